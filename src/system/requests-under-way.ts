import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests of a server may be worked on at a time; one whose answer nobody reads is still worked on. */
export interface UnderWayBounds {
  /** Of one connection. */
  readonly ofOne: number;
  /** Of all connections together, beyond the one that each may have. */
  readonly all: number;
}

/** Is told of each request of a server when it comes, and when it is answered or given up. */
export interface RequestWatcher {
  began(socket: Socket, response: ServerResponse): void;
  /** @param left how many of its connection are still worked on */
  ended(socket: Socket, left: number): void;
}

/**
 * Cuts a connection off that sends request after request without waiting for answers (HTTP pipelining): each would be
 * worked on at once. Where many do, none may have more than one: answers that wait to be read take up memory. What came with
 * the request that was too much still reaches the server's listeners: there is nothing to do where the socket is destroyed.
 */
export function boundRequestsUnderWay(server: Server, bounds: UnderWayBounds, watcher?: RequestWatcher): void {
  const connections = new WeakMap<Socket, { underWay: number }>();
  let all = 0;
  server.prependListener('request', ({ socket }, response) => {
    const connection = connections.get(socket) ?? { underWay: 0 };
    connections.set(socket, connection);
    connection.underWay += 1;
    all += 1;
    watcher?.began(socket, response);
    response.on('close', () => {
      connection.underWay -= 1;
      all -= 1;
      watcher?.ended(socket, connection.underWay);
    });
    if (connection.underWay > bounds.ofOne || (connection.underWay > 1 && all > bounds.all)) socket.destroy();
  });
}

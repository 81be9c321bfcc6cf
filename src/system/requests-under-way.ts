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
 * worked on at once. Where many do, none may have more than one: answers that wait to be read take up memory.
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
    if (connection.underWay > bounds.ofOne || (connection.underWay > 1 && all > bounds.all)) cutOff(socket);
  });
}

/** A parser's callback says by this that what follows is no HTTP (llhttp, `on_headers_complete`). */
const NO_MORE = 2;

/**
 * Takes no notice of what came with the request, either: 64 KiB hold two thousand, and all would be parsed before the
 * connection is closed. Node has no public name for that; without its parser it is only slower.
 */
function cutOff(socket: Socket): void {
  const parser: unknown = Reflect.get(socket, 'parser');
  if (parser instanceof Object) Reflect.set(parser, 'onIncoming', () => NO_MORE);
  socket.destroy();
}

import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests of a server may be in flight. A request is in flight until its response was read. */
interface InFlightLimits {
  readonly perConnection: number;
  /** For all connections together. A connection may always have one request in flight. */
  readonly total: number;
}

/** Ends the connections of a server in two steps. */
export interface RequestDraining {
  /** From now on responses ask their clients to close the connection. */
  start(): void;
  /** Closes every connection as soon as it is idle. A request that is not read yet does not count. */
  closeIdle(): void;
  /** How many requests of each connection are in flight. */
  inFlight(): ReadonlyMap<Socket, number>;
}

/**
 * Closes connections that send too many requests without waiting for responses (HTTP pipelining), because the server
 * would work on all of them at once. Above the total limit, a connection may have only one request, because unread
 * responses take memory. Requests that arrived together with the excess one still reach the server's listeners,
 * which must ignore them if the socket is destroyed.
 */
export function limitInFlightRequests(server: Server, { perConnection, total }: InFlightLimits): RequestDraining {
  const connections = new Map<Socket, { inFlight: number }>();
  let inFlight = 0;
  let isDraining = false;
  let closesIdle = false;
  const add = (socket: Socket) => {
    const connection = { inFlight: 0 };
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
    return connection;
  };
  server.prependListener('request', ({ socket }, response) => {
    const connection = connections.get(socket) ?? add(socket);
    connection.inFlight += 1;
    inFlight += 1;
    if (isDraining) response.setHeader('connection', 'close');
    response.on('close', () => {
      connection.inFlight -= 1;
      inFlight -= 1;
      if (closesIdle) server.closeIdleConnections();
    });
    if (connection.inFlight > perConnection || (connection.inFlight > 1 && inFlight > total)) socket.destroy();
  });
  return {
    start() {
      isDraining = true;
    },
    closeIdle() {
      closesIdle = true;
      server.closeIdleConnections();
    },
    inFlight: () => new Map([...connections].map(([socket, connection]) => [socket, connection.inFlight])),
  };
}

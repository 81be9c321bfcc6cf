import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How many requests of a server may be worked on at a time; one whose response nobody reads is still worked on. */
export interface InFlightLimits {
  readonly perConnection: number;
  /** Of all connections together, beyond the one that each may have. */
  readonly total: number;
}

/**
 * Cuts a connection off that sends request after request without waiting for responses (HTTP pipelining): each would be
 * worked on at once. If many do, none may have more than one: responses that wait to be read take up memory. What came with
 * the request that was too much still reaches the server's listeners: there is nothing to do if the socket is destroyed.
 * @returns drains the server: from then on every connection is closed as soon as it is idle
 */
export function limitInFlightRequests(server: Server, { perConnection, total }: InFlightLimits): () => void {
  const connections = new WeakMap<Socket, { inFlight: number }>();
  let all = 0;
  let isDraining = false;
  server.prependListener('request', ({ socket }, response) => {
    const connection = connections.get(socket) ?? { inFlight: 0 };
    connections.set(socket, connection);
    connection.inFlight += 1;
    all += 1;
    if (isDraining) response.setHeader('connection', 'close');
    response.on('close', () => {
      connection.inFlight -= 1;
      all -= 1;
      if (isDraining) server.closeIdleConnections();
    });
    if (connection.inFlight > perConnection || (connection.inFlight > 1 && all > total)) socket.destroy();
  });
  return () => {
    isDraining = true;
    server.closeIdleConnections();
  };
}

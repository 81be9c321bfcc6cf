import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Cuts a connection off that sends request after request without waiting for answers (HTTP pipelining): each would be
 * worked on at once.
 * @param most requests of one connection that may be worked on at a time
 */
export function boundRequestsUnderWay(server: Server, most: number): void {
  const underWay = new WeakMap<Socket, number>();
  server.prependListener('request', ({ socket }, response) => {
    const count = (underWay.get(socket) ?? 0) + 1;
    underWay.set(socket, count);
    response.once('close', () => underWay.set(socket, (underWay.get(socket) ?? 1) - 1));
    if (count > most) socket.destroy();
  });
}

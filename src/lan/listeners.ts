import type { Server as HttpServer } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Timers } from '../core/clock.ts';
import type { ListeningSocket } from './listening-socket.ts';
import { Places } from './places.ts';

/** Requests under way get so long to end, in ms. */
const GRACE = 3000;

/** A server and the socket whose connections it serves. */
export class Listener<Server extends HttpServer | HttpsServer = HttpServer | HttpsServer> {
  readonly server: Server;
  readonly #socket: ListeningSocket;
  readonly #places: Places;
  /** Connections that are open. */
  #open = 0;

  /** @param halfOpen whether one who has said all and closed its side is still answered */
  constructor(server: Server, socket: ListeningSocket, { halfOpen }: { readonly halfOpen: boolean }) {
    this.server = server;
    this.#socket = socket;
    this.#places = new Places(server);
    socket.attach((connection: Socket) => {
      connection.allowHalfOpen = halfOpen;
      this.#watch(connection);
      server.emit('connection', connection);
      connection.resume();
    });
  }

  /** The server does not listen by itself: it looks at those who take too long while there is anybody, and sleeps else. */
  #watch(connection: Socket): void {
    if (this.#open === 0) this.server.emit('listening');
    this.#open += 1;
    connection.once('close', () => {
      this.#open -= 1;
      if (this.#open === 0) this.server.close();
    });
  }

  /** Leaves the socket, closes idle connections, and cuts the others off when their time is up. */
  async close(timers: Timers): Promise<void> {
    this.#socket.detach();
    const cancel = timers.after(GRACE, () => {
      for (const socket of this.#places.sockets) socket.destroy();
    });
    await this.#places.empty();
    cancel();
    this.server.close();
  }
}

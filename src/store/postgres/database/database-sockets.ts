import { once } from 'node:events';
import { Socket } from 'node:net';
import type { Timers } from '../../../core/clock.ts';
import { withTimeout } from '../../../system/clock.ts';

/** How long the end of connections is waited for, in ms: a server that hangs does not answer. */
const CLOSE_TIME = 1000;

/** The sockets of connections to the database. One whose server hangs would keep the hub's process alive. */
export class DatabaseSockets {
  readonly #open = new Set<Socket>();

  /** The option `stream` of `pg`. */
  readonly create = (): Socket => {
    const socket = new Socket();
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  };

  /** Waits until all sockets are closed, and destroys those that are not closed in time. */
  async close(timers: Timers): Promise<void> {
    await withTimeout(Promise.allSettled([...this.#open].map((socket) => once(socket, 'close'))), CLOSE_TIME, timers);
    for (const socket of this.#open) socket.destroy();
  }
}

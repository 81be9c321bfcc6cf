import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';

const CHANNEL = 'net.server.socket';

/** The server's sockets of the connections that this process accepts. */
export class AcceptedSockets implements Disposable {
  readonly #sockets: { readonly socket: Socket; readonly remotePort: number | undefined }[] = [];

  constructor() {
    subscribe(CHANNEL, this.#accept);
  }

  /** How many connections were accepted. */
  get count(): number {
    return this.#sockets.length;
  }

  /**
   * The server's end of a connection.
   * @throws Error if the server has not accepted it
   */
  serverSideOf({ localPort }: Socket): Socket {
    const found = this.#sockets.find(({ remotePort }) => remotePort === localPort);
    if (found === undefined) throw new Error(`nobody has accepted the connection from port ${localPort}`);
    return found.socket;
  }

  [Symbol.dispose](): void {
    unsubscribe(CHANNEL, this.#accept);
  }

  readonly #accept = (message: unknown): void => {
    const { socket } = message as { readonly socket: Socket };
    // Known as long as the connection exists.
    this.#sockets.push({ socket, remotePort: socket.remotePort });
  };
}

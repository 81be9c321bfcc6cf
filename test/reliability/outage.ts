import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A way to a server on loopback that can be closed: connections are refused then, as from a machine that is off. */
export class Outage implements AsyncDisposable {
  readonly #target: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | null = null;
  #port = 0;

  private constructor(target: number) {
    this.#target = target;
  }

  /** @param target the port that it leads to */
  static async before(target: number): Promise<Outage> {
    const outage = new Outage(target);
    await outage.end();
    return outage;
  }

  get port(): number {
    return this.#port;
  }

  async begin(): Promise<void> {
    const server = this.#server;
    this.#server = null;
    if (server === null) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async end(): Promise<void> {
    const server = createServer((incoming) => {
      const outgoing = connect(this.#target, '127.0.0.1');
      for (const [socket, other] of [
        [incoming, outgoing],
        [outgoing, incoming],
      ] as const) {
        this.#sockets.add(socket);
        socket.on('error', () => undefined);
        socket.on('close', () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.begin();
  }
}

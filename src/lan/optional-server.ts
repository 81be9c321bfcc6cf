import type { IncomingMessage, RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import { type Rejection, servePermitted } from './http-app.ts';
import { Listener } from './listener.ts';
import type { OpenedPort } from './listening-socket.ts';
import type { ListeningSocketPool, SocketName } from './listening-socket-pool.ts';

/** Connections at a time. All of them may have one address: that of the proxy, or of the machine. */
const MAX_CONNECTIONS = 250;
/** How long until an unavailable port is tried again, in ms. */
const RETRY_INTERVAL = 30_000;

/** A port that could not be opened; `retry_in` in s. */
interface UnavailablePort {
  readonly port: number;
  readonly error: string;
  readonly retry_in: number;
}

/** Where to listen, and for whom. */
export interface OptionalServerOptions {
  readonly name: SocketName;
  /** IP addresses; one that the machine does not have is skipped. If another program has one, none is served. */
  readonly hosts: readonly string[];
  /** 0 for any free one. */
  readonly port: number;
  /** Keeps the port open until the next hub of this process listens there. */
  readonly sockets: Pick<ListeningSocketPool, 'claimPort' | 'release'>;
  readonly timers: Timers;
  /** See `ListenerOptions.refusal`. */
  refusal?(connection: Socket): string | null;
  /** The response to a request that is not meant for the hub; null: it is served. */
  rejection(request: IncomingMessage): Rejection | null;
  readonly serve: RequestListener;
  onListening(port: number): void;
  /** Called for the first failure only. */
  onUnavailable(port: UnavailablePort): void;
}

/** A plain HTTP server. If its port is unavailable, it keeps trying, and the hub runs without it. */
export class OptionalServer implements AsyncDisposable {
  readonly #options: OptionalServerOptions;
  #opened: (OpenedPort & { readonly listeners: readonly Listener[] }) | null = null;
  #cancelRetry: () => void = () => undefined;
  #isClosed = false;
  #hasFailed = false;

  private constructor(options: OptionalServerOptions) {
    this.#options = options;
  }

  /** Resolves after the first attempt to open the port, even if that failed. */
  static async open(options: OptionalServerOptions): Promise<OptionalServer> {
    const server = new OptionalServer(options);
    await server.#listen();
    return server;
  }

  /** The port in use; null while it is unavailable. */
  get port(): number | null {
    return this.#opened?.port ?? null;
  }

  async #listen(): Promise<void> {
    const { name, hosts, port, sockets, timers, refusal, rejection, serve, onListening, onUnavailable } = this.#options;
    try {
      const opened = await sockets.claimPort(name, hosts, port);
      const options = {
        serve: servePermitted(rejection, serve),
        tls: null,
        timers,
        limits: { total: MAX_CONNECTIONS, perAddress: MAX_CONNECTIONS },
        ...(refusal === undefined ? {} : { refusal }),
      };
      const listeners = opened.sockets.map((socket) => Listener.open(socket, options));
      this.#opened = { ...opened, listeners };
      onListening(opened.port);
      if (this.#isClosed) await this.#close();
    } catch (error) {
      if (!this.#hasFailed) onUnavailable({ port, error: messageOf(error), retry_in: RETRY_INTERVAL / 1000 });
      this.#hasFailed = true;
      if (!this.#isClosed) this.#cancelRetry = timers.after(RETRY_INTERVAL, () => void this.#listen());
    }
  }

  async #close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = null;
    if (opened === null) return;
    await Promise.all(opened.listeners.map((listener) => listener.close()));
    this.#options.sockets.release(opened.sockets);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#close();
  }
}

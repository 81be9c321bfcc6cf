import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

/** The two ports of a hub: `lan.http_port` and `lan.https_port` in the configuration. */
export type PortName = 'http' | 'https';

/** Where a hub listens. */
export interface ListenConfiguration {
  /** IP addresses; one that the machine does not have is skipped, unless no other is left. */
  readonly addresses: readonly string[];
  /** 0 means any free port, the same on all addresses; the next hub in this process gets the same port again. */
  readonly ports: Readonly<Record<PortName, number>>;
}

/** A port and the sockets that listen on it, one for each address. */
export interface OpenedPort {
  readonly port: number;
  readonly sockets: readonly ListeningSocket[];
}

/** The most connections that may wait while no handler is attached; further ones are closed. */
const MAX_PENDING_CONNECTIONS = 1000;

/** A listening socket. Connections that arrive while no handler is attached wait, unread. */
export class ListeningSocket {
  /** As the caller wrote it: an IPv6 address has several spellings. */
  readonly address: string;
  readonly port: number;
  /** Whether systemd has opened it, and keeps it open when this process ends. */
  readonly isActivated: boolean;
  /** What the previous hub on this socket has left for the next one. */
  predecessor: Disposable | null = null;
  #isClosed = false;
  readonly #server: Server;
  readonly #pending = new Set<Socket>();
  #handler: ((connection: Socket) => void) | null = null;

  private constructor(
    server: Server,
    { address, port, isActivated }: Pick<ListeningSocket, 'address' | 'port' | 'isActivated'>,
  ) {
    this.address = address;
    this.port = port;
    this.isActivated = isActivated;
    this.#server = server;
    server.on('connection', (connection) => this.#onConnection(connection));
  }

  /** @throws Error of Node with a `code`; Error if the descriptor is not a TCP socket */
  static async listen(
    at: { readonly host: string; readonly port: number } | { readonly fd: number },
  ): Promise<ListeningSocket> {
    const server = createServer({ pauseOnConnect: true, noDelay: true });
    server.listen('host' in at ? { ...at, ipv6Only: at.host.includes(':') } : at);
    await once(server, 'listening');
    const bound = server.address();
    if (bound === null || typeof bound === 'string') {
      server.close();
      throw new Error('not a TCP socket');
    }
    const isActivated = 'fd' in at;
    return new ListeningSocket(server, {
      address: isActivated ? bound.address : at.host,
      port: bound.port,
      isActivated,
    });
  }

  /** Whether no further hub can use it. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  /**
   * Passes every connection to `serve`, the waiting ones first.
   * @param serve receives a paused connection
   */
  attach(serve: (connection: Socket) => void): void {
    this.#handler = serve;
    const waiting = [...this.#pending];
    this.#pending.clear();
    for (const connection of waiting) serve(connection);
  }

  /** From now on connections wait until a handler attaches. */
  detach(): void {
    this.#handler = null;
  }

  /** Stops listening at once, and closes the connections that wait for another hub. */
  close(): void {
    this.#isClosed = true;
    this.#server.close();
    for (const connection of this.#pending) connection.destroy();
    this.predecessor?.[Symbol.dispose]();
    this.predecessor = null;
  }

  #onConnection(connection: Socket): void {
    if (this.#handler !== null) {
      this.#handler(connection);
      return;
    }
    if (this.#pending.size >= MAX_PENDING_CONNECTIONS) {
      connection.destroy();
      return;
    }
    this.#pending.add(connection);
  }
}

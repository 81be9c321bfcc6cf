import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';

/** What a port is for; in the configuration `lan.http_port` and `lan.https_port`. */
export type PortName = 'http' | 'https';

/** Where a hub wants to be reached. */
export interface ListenConfiguration {
  /** IP addresses; one that the machine does not have is passed over as long as another is left. */
  readonly addresses: readonly string[];
  /** 0 is any free port, the same at all addresses; a hub that follows another in this process gets the same again. */
  readonly ports: Readonly<Record<PortName, number>>;
}

/** A port and the sockets that listen on it, one an address. */
export interface OpenedPort {
  readonly port: number;
  readonly sockets: readonly ListeningSocket[];
}

/** Connections that nobody serves yet; what comes beyond them is closed. */
const MAX_PENDING_CONNECTIONS = 1000;

/** A socket that listens. Connections that come while nobody serves them wait, unread. */
export class ListeningSocket {
  /** As it was asked for: IPv6 addresses can be written in many ways. */
  readonly address: string;
  readonly port: number;
  readonly #server: Server;
  readonly #pending = new Set<Socket>();
  #handler: ((connection: Socket) => void) | null = null;

  private constructor(server: Server, address: string, port: number) {
    this.address = address;
    this.port = port;
    this.#server = server;
    server.on('connection', (connection) => this.#onConnection(connection));
  }

  /** @throws Error as Node has it, with `code`; where a descriptor is none of a listening TCP socket, too */
  static async listen(
    at: { readonly host: string; readonly port: number } | { readonly fd: number },
  ): Promise<ListeningSocket> {
    const server = createServer({ pauseOnConnect: true, noDelay: true });
    server.listen('host' in at ? { ...at, ipv6Only: at.host.includes(':') } : at);
    await once(server, 'listening');
    const bound = server.address();
    if (bound === null || typeof bound === 'string') {
      server.close();
      throw new Error('it is no TCP socket');
    }
    return new ListeningSocket(server, 'host' in at ? at.host : bound.address, bound.port);
  }

  /**
   * Gives every connection to `serve`, those that wait first.
   * @param serve gets a connection that is paused
   */
  attach(serve: (connection: Socket) => void): void {
    this.#handler = serve;
    const waiting = [...this.#pending];
    this.#pending.clear();
    for (const connection of waiting) serve(connection);
  }

  /** From now on connections wait for the next one to attach. */
  detach(): void {
    this.#handler = null;
  }

  /** Stops listening at once, and ends the connections that wait. */
  close(): void {
    this.#server.close();
    for (const connection of this.#pending) connection.destroy();
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

import { once } from 'node:events';
import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import { Failure } from '../core/failure.ts';

/** What a port is for; in the configuration `lan.http_port` and `lan.https_port`. */
export type PortName = 'http' | 'https';

/** Where a hub wants to be reached. */
export interface WantedSockets {
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
const MOST_WAITING = 1000;

/** A socket that listens. Connections that come while nobody serves them wait, unread. */
export class ListeningSocket {
  /** As it was asked for: IPv6 addresses can be written in many ways. */
  readonly address: string;
  readonly port: number;
  readonly #server: Server;
  readonly #waiting = new Set<Socket>();
  #serve: ((connection: Socket) => void) | null = null;

  private constructor(server: Server, address: string, port: number) {
    this.address = address;
    this.port = port;
    this.#server = server;
    server.on('connection', (connection) => this.#come(connection));
  }

  /** @throws Error as Node has it, with `code` */
  static async listen(options: ListenOptions): Promise<ListeningSocket> {
    const server = createServer({ pauseOnConnect: true, noDelay: true });
    server.listen(options);
    await once(server, 'listening');
    const { address, port } = server.address() as AddressInfo;
    return new ListeningSocket(server, options.host ?? address, port);
  }

  /**
   * Gives every connection to `serve`, those that wait first.
   * @param serve gets a connection that is paused
   */
  attach(serve: (connection: Socket) => void): void {
    this.#serve = serve;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const connection of waiting) serve(connection);
  }

  /** From now on connections wait for the next one to attach. */
  detach(): void {
    this.#serve = null;
  }

  /** Stops listening at once, and ends the connections that wait. */
  close(): void {
    this.#server.close();
    for (const connection of this.#waiting) connection.destroy();
  }

  #come(connection: Socket): void {
    if (this.#serve !== null) {
      this.#serve(connection);
      return;
    }
    if (this.#waiting.size >= MOST_WAITING) {
      connection.destroy();
      return;
    }
    this.#waiting.add(connection);
  }
}

/** The address does not exist on this machine, as `::` where IPv6 is off. */
const NO_SUCH_ADDRESS = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/**
 * The TCP sockets that this process listens on. They outlive a hub: the one that follows it finds those that it wants still
 * open, and serves who came in between.
 */
export class ListeningSockets implements Disposable {
  readonly #open = new Set<ListeningSocket>();
  /** Those that a hub has. */
  readonly #claimed = new Set<ListeningSocket>();
  /** For which port "any" was chosen. */
  readonly #anyPort = new Map<ListeningSocket, PortName>();

  /**
   * Opens what is not open already. All of it belongs to the caller until it is released.
   * @throws Failure `port_unavailable`
   */
  async claim({ addresses, ports }: WantedSockets): Promise<Record<PortName, OpenedPort>> {
    const https = await this.#claimPort('https', addresses, ports.https);
    try {
      return { https, http: await this.#claimPort('http', addresses, ports.http) };
    } catch (error) {
      this.release(https.sockets);
      throw error;
    }
  }

  /** Leaves sockets to the next one who wants them; until then they go on listening. */
  release(sockets: readonly ListeningSocket[]): void {
    for (const socket of sockets) {
      socket.detach();
      this.#claimed.delete(socket);
    }
  }

  /** Closes what nobody has claimed. */
  closeUnclaimed(): void {
    this.#closeUnclaimed(() => true);
  }

  /** Closes all; connections that stand are left alone. */
  [Symbol.dispose](): void {
    for (const socket of this.#open) this.#close(socket);
  }

  async #claimPort(name: PortName, addresses: readonly string[], wanted: number): Promise<OpenedPort> {
    const sockets: ListeningSocket[] = [];
    let port = wanted;
    let failure: unknown;
    for (const address of addresses) {
      try {
        const socket = this.#find(name, address, port) ?? (await this.#listen(address, port));
        this.#claimed.add(socket);
        if (port === 0) this.#anyPort.set(socket, name);
        port = socket.port;
        sockets.push(socket);
      } catch (error) {
        failure = error;
        if (NO_SUCH_ADDRESS.includes(codeOf(error))) continue;
        this.release(sockets);
        throw unavailable(name, address, port, error);
      }
    }
    if (sockets.length === 0) throw unavailable(name, addresses.join(', '), wanted, failure);
    return { port, sockets };
  }

  #find(name: PortName, address: string, port: number): ListeningSocket | undefined {
    return [...this.#open].find(
      (socket) =>
        !this.#claimed.has(socket) &&
        socket.address === address &&
        (port === 0 ? this.#anyPort.get(socket) === name : socket.port === port),
    );
  }

  async #listen(host: string, port: number): Promise<ListeningSocket> {
    const options = { host, port, ipv6Only: host.includes(':') };
    const socket = await ListeningSocket.listen(options).catch((error: unknown) => {
      // One of ours may be in the way, as that of all addresses is in the way of a single one.
      if (codeOf(error) !== 'EADDRINUSE' || !this.#closeUnclaimed((own) => own.port === port)) throw error;
      return ListeningSocket.listen(options);
    });
    this.#open.add(socket);
    return socket;
  }

  #closeUnclaimed(isMeant: (socket: ListeningSocket) => boolean): boolean {
    const unclaimed = [...this.#open].filter((socket) => !this.#claimed.has(socket) && isMeant(socket));
    for (const socket of unclaimed) this.#close(socket);
    return unclaimed.length > 0;
  }

  #close(socket: ListeningSocket): void {
    socket.close();
    this.#open.delete(socket);
    this.#claimed.delete(socket);
    this.#anyPort.delete(socket);
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has it; stop that program or choose another port',
  EACCES: 'this user may not open it; choose a port above 1023',
};

function unavailable(name: PortName, host: string, port: number, cause: unknown): Failure {
  const code = codeOf(cause);
  const message = NO_SUCH_ADDRESS.includes(code)
    ? `lan.listen: ${host} is no address of this machine; name one that is, or leave the key out`
    : `lan.${name}_port: port ${port} on ${host}: ${REASONS[code] ?? 'it can not be opened; choose another port'}`;
  return new Failure('port_unavailable', message, { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

import { Failure } from '../core/failure.ts';
import { type ActivatedSocket, assignToPorts } from './activated-sockets.ts';
import { type ListenConfiguration, ListeningSocket, type OpenedPort, type PortName } from './listening-socket.ts';

/** The address does not exist on this machine, for example `::` if IPv6 is disabled. */
const NO_SUCH_ADDRESS_CODES = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/** A port of the hub; it runs without the last three while they are unavailable. */
export type SocketName = PortName | 'ingress' | 'local' | 'metrics';

/**
 * The TCP sockets that this process listens on. They stay open when a hub of this process stops: the next hub claims
 * them again and serves the connections that arrived in between.
 */
export class ListeningSocketPool implements Disposable {
  readonly #activated: readonly ActivatedSocket[];
  readonly #openSockets = new Set<ListeningSocket>();
  /** The sockets that a hub uses. */
  readonly #claimed = new Set<ListeningSocket>();
  /** Sockets that were opened on port 0, and which port of the hub each one is. */
  readonly #ephemeralPorts = new Map<ListeningSocket, SocketName>();

  /** @param activated sockets from the service manager; if there are any, the pool opens no others */
  constructor(activated: readonly ActivatedSocket[] = []) {
    this.#activated = activated;
  }

  /**
   * Reuses or opens sockets for this configuration. They belong to the caller until it releases them.
   * @throws Failure `port_unavailable`; `config_invalid` if the sockets from systemd do not match the configuration
   */
  async claim(wanted: ListenConfiguration): Promise<Record<PortName, OpenedPort>> {
    if (this.#activated.length > 0) return assignToPorts(this.#activated, wanted);
    const { addresses, ports } = wanted;
    const https = await this.#claimPort('https', addresses, ports.https);
    try {
      return { https, http: await this.#claimPort('http', addresses, ports.http) };
    } catch (error) {
      this.release(https.sockets);
      throw error;
    }
  }

  /**
   * Reuses or opens one socket for each address that the machine has, also beside those from systemd; all or none.
   * @param port 0 for any free one
   * @throws Failure `port_unavailable`
   */
  async claimPort(name: SocketName, addresses: readonly string[], port: number): Promise<OpenedPort> {
    try {
      return await this.#claimPort(name, addresses, port);
    } catch (error) {
      // Nobody may claim the others for long, and a client would wait there.
      this.#closeUnclaimed((socket) => socket.port === port);
      throw error;
    }
  }

  /** Releases sockets for the next claim; until then they keep listening. */
  release(sockets: readonly ListeningSocket[]): void {
    for (const socket of sockets) {
      socket.detach();
      this.#claimed.delete(socket);
    }
  }

  /** Closes all sockets that are not claimed. */
  closeUnclaimed(): void {
    this.#closeUnclaimed(() => true);
  }

  /** Closes all sockets; established connections stay open. */
  [Symbol.dispose](): void {
    for (const { socket } of this.#activated) socket.close();
    for (const socket of this.#openSockets) this.#close(socket);
  }

  async #claimPort(name: SocketName, addresses: readonly string[], configured: number): Promise<OpenedPort> {
    const sockets: ListeningSocket[] = [];
    let port = configured;
    let failure: unknown;
    for (const address of addresses) {
      try {
        const socket = this.#findUnclaimed(name, address, port) ?? (await this.#listen(address, port));
        this.#claimed.add(socket);
        if (port === 0) this.#ephemeralPorts.set(socket, name);
        port = socket.port;
        sockets.push(socket);
      } catch (error) {
        failure = error;
        if (NO_SUCH_ADDRESS_CODES.includes(errorCode(error))) continue;
        this.release(sockets);
        throw portUnavailable(name, address, port, error);
      }
    }
    if (sockets.length === 0) throw portUnavailable(name, addresses.join(', '), configured, failure);
    return { port, sockets };
  }

  #findUnclaimed(name: SocketName, address: string, port: number): ListeningSocket | undefined {
    return [...this.#openSockets].find(
      (socket) =>
        !this.#claimed.has(socket) &&
        socket.address === address &&
        (port === 0 ? this.#ephemeralPorts.get(socket) === name : socket.port === port),
    );
  }

  async #listen(host: string, port: number): Promise<ListeningSocket> {
    const socket = await ListeningSocket.listen({ host, port }).catch((error: unknown) => {
      // One of our own unclaimed sockets may hold the port: one for all addresses blocks one for a single address.
      if (errorCode(error) !== 'EADDRINUSE' || !this.#closeUnclaimed((own) => own.port === port)) throw error;
      return ListeningSocket.listen({ host, port });
    });
    this.#openSockets.add(socket);
    return socket;
  }

  #closeUnclaimed(matches: (socket: ListeningSocket) => boolean): boolean {
    const unclaimed = [...this.#openSockets].filter((socket) => !this.#claimed.has(socket) && matches(socket));
    for (const socket of unclaimed) this.#close(socket);
    return unclaimed.length > 0;
  }

  #close(socket: ListeningSocket): void {
    socket.close();
    this.#openSockets.delete(socket);
    this.#claimed.delete(socket);
    this.#ephemeralPorts.delete(socket);
  }
}

const LISTEN_ERROR_HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses it; stop that program or choose another port',
  EACCES: 'this user may not open it; choose a port above 1023',
};

const PORT_KEYS: Readonly<Record<SocketName, string>> = {
  http: 'lan.http_port',
  https: 'lan.https_port',
  ingress: 'ingress.listen',
  local: 'local.port',
  metrics: 'metrics.listen',
};

function portUnavailable(name: SocketName, host: string, port: number, cause: unknown): Failure {
  const code = errorCode(cause);
  const message = NO_SUCH_ADDRESS_CODES.includes(code)
    ? `${name === 'ingress' || name === 'metrics' ? PORT_KEYS[name] : 'lan.listen'}: ${host} is not an address of this machine; use one of its addresses, or remove the key`
    : `${PORT_KEYS[name]}: port ${port} on ${host}: ${LISTEN_ERROR_HINTS[code] ?? 'it cannot be opened; choose another port'}`;
  return new Failure('port_unavailable', message, { cause });
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

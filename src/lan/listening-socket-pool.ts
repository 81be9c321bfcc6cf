import { Failure } from '../core/failure.ts';
import { type ActivatedSocket, assignToPorts } from './activated-sockets.ts';
import { type ListenConfiguration, ListeningSocket, type OpenedPort, type PortName } from './listening-socket.ts';

/** The address does not exist on this machine, as `::` where IPv6 is off. */
const NO_SUCH_ADDRESS_CODES = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/**
 * The TCP sockets that this process listens on. They outlive a hub: the one that follows it finds those that it wants still
 * open, and serves who came in between.
 */
export class ListeningSocketPool implements Disposable {
  readonly #activated: readonly ActivatedSocket[];
  readonly #openSockets = new Set<ListeningSocket>();
  /** Those that a hub has. */
  readonly #claimed = new Set<ListeningSocket>();
  /** For which port "any" was chosen. */
  readonly #ephemeralPorts = new Map<ListeningSocket, PortName>();

  /** @param activated opened before this process was started; where there are any, no other is opened */
  constructor(activated: readonly ActivatedSocket[] = []) {
    this.#activated = activated;
  }

  /**
   * Opens what is not open already. All of it belongs to the caller until it is released.
   * @throws Failure `port_unavailable`; `config_invalid` where sockets that systemd has opened are not those that are wanted
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
    for (const { socket } of this.#activated) socket.close();
    for (const socket of this.#openSockets) this.#close(socket);
  }

  async #claimPort(name: PortName, addresses: readonly string[], wanted: number): Promise<OpenedPort> {
    const sockets: ListeningSocket[] = [];
    let port = wanted;
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
    if (sockets.length === 0) throw portUnavailable(name, addresses.join(', '), wanted, failure);
    return { port, sockets };
  }

  #findUnclaimed(name: PortName, address: string, port: number): ListeningSocket | undefined {
    return [...this.#openSockets].find(
      (socket) =>
        !this.#claimed.has(socket) &&
        socket.address === address &&
        (port === 0 ? this.#ephemeralPorts.get(socket) === name : socket.port === port),
    );
  }

  async #listen(host: string, port: number): Promise<ListeningSocket> {
    const socket = await ListeningSocket.listen({ host, port }).catch((error: unknown) => {
      // One of ours may be in the way, as that of all addresses is in the way of a single one.
      if (errorCode(error) !== 'EADDRINUSE' || !this.#closeUnclaimed((own) => own.port === port)) throw error;
      return ListeningSocket.listen({ host, port });
    });
    this.#openSockets.add(socket);
    return socket;
  }

  #closeUnclaimed(isMeant: (socket: ListeningSocket) => boolean): boolean {
    const unclaimed = [...this.#openSockets].filter((socket) => !this.#claimed.has(socket) && isMeant(socket));
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
  EADDRINUSE: 'another program has it; stop that program or choose another port',
  EACCES: 'this user may not open it; choose a port above 1023',
};

function portUnavailable(name: PortName, host: string, port: number, cause: unknown): Failure {
  const code = errorCode(cause);
  const message = NO_SUCH_ADDRESS_CODES.includes(code)
    ? `lan.listen: ${host} is no address of this machine; name one that is, or leave the key out`
    : `lan.${name}_port: port ${port} on ${host}: ${LISTEN_ERROR_HINTS[code] ?? 'it can not be opened; choose another port'}`;
  return new Failure('port_unavailable', message, { cause });
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

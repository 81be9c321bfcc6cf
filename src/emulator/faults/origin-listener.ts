import type { Server } from 'node:http';
import { createServer, type Server as Listener, type Socket } from 'node:net';
import { systemTimers } from '../../system/clock.ts';
import type { TlsFault } from './kinds.ts';

/** Milliseconds until a port that is taken is tried again. */
const RETRY_INTERVAL_MS = 1000;

/** Bytes that no TLS client takes for a handshake. */
const NON_TLS_BYTES = 'HTTP/1.1 400 Bad Request\r\n\r\n';

/** What `localhost` stands for (RFC 6761, 6.3); a machine may do without the second one. */
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1'] as const;
const ADDRESS_UNAVAILABLE_CODES = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/**
 * The listeners of an origin and its connections, below HTTP: what can go wrong before there is a request. They hand each
 * connection to the HTTP or HTTPS server by its event `connection`, as Node's documentation has it; the server itself does
 * not listen.
 */
export class OriginListener {
  /** Asked at each new connection of a TLS origin. */
  faults: { strike(): TlsFault | null } = { strike: () => null };
  readonly #server: Server;
  readonly #isSecure: boolean;
  readonly #sockets = new Map<string, Socket>();
  /** By address. */
  readonly #listeners = new Map<string, Listener>();
  #port = 0;
  #isDown = false;
  #onBroughtUp: () => void = () => undefined;
  #cancelTimer: () => void = () => undefined;
  #restarting: Promise<void> = Promise.resolve();

  constructor(server: Server, isSecure: boolean) {
    this.#server = server;
    this.#isSecure = isSecure;
  }

  /**
   * Begins to listen.
   * @param host an address or a name; `localhost` is both loopback addresses, as far as the machine has them
   * @param port 0: any free one
   * @returns the port
   * @throws Error the listener's own
   */
  async listen(host: string, port: number): Promise<number> {
    this.#port = port;
    for (const address of host === 'localhost' ? LOOPBACK_ADDRESSES : [host]) {
      // As an HTTP server's own: a client may close its side and still read the answer.
      const listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#accept(socket));
      const problem = await listenOn(listener, address, this.#port);
      if (problem === null) {
        this.#listeners.set(address, listener);
        const bound = listener.address();
        if (typeof bound === 'object' && bound !== null) this.#port = bound.port;
      } else if (this.#listeners.size === 0 || !ADDRESS_UNAVAILABLE_CODES.includes(problem.code ?? '')) throw problem;
    }
    return this.#port;
  }

  /** Why a fault of this kind can't be here, or null. */
  unsupportedReason(kind: 'origin_down' | 'tls_failure'): string | null {
    if (kind === 'tls_failure' && !this.#isSecure) {
      return 'kind: found tls_failure for an origin of plain HTTP; allowed is reset_before, or an emulator with TLS';
    }
    if (kind === 'origin_down' && this.#isDown) return 'origin: found one that is down; allowed is one that is up';
    return null;
  }

  /**
   * Stops listening and cuts all connections but one.
   * @param seconds until it listens again; null: until {@link bringUp}
   * @param over called when it is to listen again
   */
  takeDown(seconds: number | null, spared: Socket | undefined, over: () => void): void {
    this.#isDown = true;
    this.#onBroughtUp = over;
    for (const listener of this.#listeners.values()) listener.close();
    const sparedPeer = spared === undefined ? null : peerKey(spared);
    for (const [name, socket] of this.#sockets) if (name !== sparedPeer) socket.destroy();
    if (seconds !== null) this.#cancelTimer = systemTimers.after(1000 * seconds, () => void this.bringUp());
  }

  /** Listens again on the same port; where another program has taken it, as soon as that is gone. */
  bringUp(): Promise<void> {
    this.#cancelTimer();
    this.#onBroughtUp();
    this.#restarting = this.#restarting.then(() => this.#listenAgain());
    return this.#restarting;
  }

  /** Cuts a connection with a reset (RST), under TLS too. */
  reset(socket: Socket): void {
    (this.#sockets.get(peerKey(socket)) ?? socket).resetAndDestroy();
  }

  /** Stops listening for good and cuts all connections. */
  async close(): Promise<void> {
    this.#cancelTimer();
    await this.#restarting;
    this.#cancelTimer();
    for (const listener of this.#listeners.values()) listener.close();
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  async #listenAgain(): Promise<void> {
    if (!this.#isDown) return;
    let up = true;
    for (const [address, listener] of this.#listeners) {
      if (!listener.listening && (await listenOn(listener, address, this.#port)) !== null) up = false;
    }
    if (up) this.#isDown = false;
    else this.#cancelTimer = systemTimers.after(RETRY_INTERVAL_MS, () => void this.bringUp());
  }

  #accept(socket: Socket): void {
    const name = peerKey(socket);
    this.#sockets.set(name, socket);
    socket.once('close', () => this.#sockets.delete(name));
    const fault = this.#isSecure ? this.faults.strike() : null;
    if (fault === null) this.#server.emit('connection', socket);
    else failHandshake(socket, fault);
  }
}

/** Lets a listener listen. @returns what came in the way, or null */
async function listenOn(listener: Listener, host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | null>();
  const listening = () => resolve(null);
  listener.once('listening', listening).once('error', resolve);
  listener.listen({ host, port });
  const problem = await promise;
  listener.off('listening', listening).off('error', resolve);
  return problem;
}

function failHandshake(socket: Socket, { answer }: TlsFault): void {
  socket.on('error', () => undefined);
  if (answer === 'close') socket.destroy();
  // After the ClientHello: closing with unread bytes would be a reset, and the garbage might be lost with it.
  else socket.once('data', () => socket.end(NON_TLS_BYTES));
}

/** What tells a connection from all others of its listener. */
function peerKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

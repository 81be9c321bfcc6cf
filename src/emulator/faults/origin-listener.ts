import type { Server } from 'node:http';
import { createServer, type Server as Listener, type Socket } from 'node:net';
import { systemTimers } from '../../system/clock.ts';
import type { TlsFault } from './kinds.ts';

/** Milliseconds between attempts to listen on a port that is taken. */
const RETRY_INTERVAL_MS = 1000;

/** Bytes that no TLS client accepts as a handshake. */
const NON_TLS_BYTES = 'HTTP/1.1 400 Bad Request\r\n\r\n';

/** The addresses of `localhost` (RFC 6761, 6.3); a machine may lack the second one. */
const LOOPBACK_ADDRESSES = ['127.0.0.1', '::1'] as const;
const ADDRESS_UNAVAILABLE_CODES = ['EADDRNOTAVAIL', 'EAFNOSUPPORT'];

/**
 * The listeners of an origin and its connections, below HTTP, for faults that occur before there is a request. They
 * pass each connection to the HTTP or HTTPS server by its event `connection`, as Node documents it; the server itself
 * does not listen.
 */
export class OriginListener {
  /** Selects the fault of each new connection of a TLS origin. */
  matchFault: () => TlsFault | null = () => null;
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
   * Starts to listen.
   * @param host an address or a name; `localhost` means both loopback addresses, if the machine has them
   * @param port 0: any free port
   * @returns the port
   * @throws Error of the listener
   */
  async listen(host: string, port: number): Promise<number> {
    this.#port = port;
    for (const address of host === 'localhost' ? LOOPBACK_ADDRESSES : [host]) {
      // As in Node's HTTP server: a client may close its side and still read the response.
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

  /** Why this origin can't have a fault of this kind now, or null. */
  unsupportedReason(kind: 'origin_down' | 'tls_failure'): string | null {
    if (kind === 'tls_failure' && !this.#isSecure) {
      return 'kind: tls_failure needs an origin with TLS (found plain HTTP); use reset_before, or an emulator with TLS';
    }
    if (kind === 'origin_down' && this.#isDown) return 'origin: is already down; remove the fault that keeps it down';
    return null;
  }

  /**
   * Stops listening and cuts all connections except `spared`.
   * @param seconds until it listens again; null: until {@link bringUp}
   * @param onBroughtUp called when it starts to listen again
   */
  takeDown(seconds: number | null, spared: Socket | undefined, onBroughtUp: () => void): void {
    this.#isDown = true;
    this.#onBroughtUp = onBroughtUp;
    for (const listener of this.#listeners.values()) listener.close();
    const sparedPeer = spared === undefined ? null : peerKey(spared);
    for (const [name, socket] of this.#sockets) if (name !== sparedPeer) socket.destroy();
    if (seconds !== null) this.#cancelTimer = systemTimers.after(1000 * seconds, () => void this.bringUp());
  }

  /** Listens again on the same port; if another program has taken it, as soon as it is free. */
  bringUp(): Promise<void> {
    this.#cancelTimer();
    this.#onBroughtUp();
    this.#restarting = this.#restarting.then(() => this.#listenAgain());
    return this.#restarting;
  }

  /** Cuts a connection with a reset (RST), also under TLS. */
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
    const fault = this.#isSecure ? this.matchFault() : null;
    if (fault === null) this.#server.emit('connection', socket);
    else failHandshake(socket, fault);
  }
}

/** Starts a listener. @returns the error, or null */
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
  // Only after the ClientHello: closing with unread bytes causes a reset, which could discard the garbage.
  else socket.once('data', () => socket.end(NON_TLS_BYTES));
}

/** Identifies a connection among those of its listener. */
function peerKey({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { systemTimers } from '../../system/clock.ts';
import type { TlsFault } from './options.ts';

/** Milliseconds until a port that is taken is tried again. */
const RETRY = 1000;

/** Bytes that no TLS client takes for a handshake. */
const GARBAGE = 'HTTP/1.1 400 Bad Request\r\n\r\n';

/** The listener of an origin and its connections, below HTTP: what can go wrong before there is a request. */
export class OriginLine {
  /** Asked at each new connection of a TLS origin. */
  faults: { strike(): TlsFault | null } = { strike: () => null };
  readonly #app: FastifyInstance;
  readonly #server: Server;
  readonly #sockets = new Map<string, Socket>();
  /** Where it listened, while it is down. */
  #down: { readonly host: string; readonly port: number } | null = null;
  #over: () => void = () => undefined;
  #disarm: () => void = () => undefined;
  #rising: Promise<void> = Promise.resolve();

  constructor(app: FastifyInstance) {
    this.#app = app;
    this.#server = app.server;
    const accept = this.#server.listeners('connection');
    this.#server.removeAllListeners('connection');
    this.#server.on('connection', (socket: Socket) => {
      const name = peer(socket);
      this.#sockets.set(name, socket);
      socket.once('close', () => this.#sockets.delete(name));
      const fault = this.#secure ? this.faults.strike() : null;
      if (fault !== null) return spoilHandshake(socket, fault);
      for (const listener of accept) Reflect.apply(listener, this.#server, [socket]);
    });
  }

  /** Why a fault of this kind can't be here, or null. */
  refusal(kind: 'origin_down' | 'tls_failure'): string | null {
    if (kind === 'tls_failure' && !this.#secure) {
      return 'kind: found tls_failure for an origin of plain HTTP; allowed is reset_before, or an emulator with TLS';
    }
    if (kind !== 'origin_down') return null;
    if (this.#down !== null) return 'origin: found one that is down; allowed is one that is up';
    if (this.#app.addresses().length === 1) return null;
    return 'kind: found origin_down for several listeners; allowed is an emulator that listens on one address';
  }

  /**
   * Stops listening and cuts all connections but one.
   * @param seconds until it listens again; null: until {@link up}
   * @param over called when it is to listen again
   */
  down(seconds: number | null, spared: Socket | undefined, over: () => void): void {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') return;
    this.#down = { host: address.address, port: address.port };
    this.#over = over;
    this.#server.close();
    const sparedPeer = spared === undefined ? null : peer(spared);
    for (const [name, socket] of this.#sockets) if (name !== sparedPeer) socket.destroy();
    if (seconds !== null) this.#disarm = systemTimers.after(1000 * seconds, () => void this.up());
  }

  /** Listens again on the same port; where another program has taken it, as soon as that is gone. */
  up(): Promise<void> {
    this.#disarm();
    this.#over();
    this.#rising = this.#rising.then(() => this.#listen());
    return this.#rising;
  }

  /** Cuts a connection with a reset (RST), under TLS too. */
  reset(socket: Socket): void {
    (this.#sockets.get(peer(socket)) ?? socket).resetAndDestroy();
  }

  /** To be called before the server is closed: no listener comes up after it. */
  async close(): Promise<void> {
    this.#disarm();
    await this.#rising;
    this.#disarm();
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  async #listen(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    if (this.#down === null) return;
    const listening = () => resolve(true);
    const failed = () => resolve(false);
    this.#server.once('listening', listening).once('error', failed);
    this.#server.listen(this.#down);
    const up = await promise;
    this.#server.off('listening', listening).off('error', failed);
    if (up) this.#down = null;
    else this.#disarm = systemTimers.after(RETRY, () => void this.up());
  }

  get #secure(): boolean {
    return 'setSecureContext' in this.#server;
  }
}

function spoilHandshake(socket: Socket, { answer }: TlsFault): void {
  socket.on('error', () => undefined);
  if (answer === 'close') socket.destroy();
  // After the ClientHello: closing with unread bytes would be a reset, and the garbage might be lost with it.
  else socket.once('data', () => socket.end(GARBAGE));
}

/** What tells a connection from all others of its listener. */
function peer({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

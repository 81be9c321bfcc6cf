import type { Socket } from 'node:net';
import { rateLimitKey } from '../system/limits/client-rate-limiter.ts';

/** Maximum numbers of simultaneous connections. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perAddress: number;
}

const DEFAULT_LIMITS: ConnectionLimits = { total: 1000, perAddress: 250 };

/** Limits the connections of a server, in all and from each address. */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  /** The address that each connection counts for. */
  readonly #connections = new Map<Socket, string>();
  /** Called when the last connection closes; null while new ones are expected. */
  #onDrained: (() => void) | null = null;

  constructor(limits: ConnectionLimits = DEFAULT_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** The open connections, including those in the TLS handshake. */
  get sockets(): readonly Socket[] {
    return [...this.#connections.keys()];
  }

  /** Admits or closes a new connection. @returns whether it is admitted */
  admit(socket: Socket): boolean {
    const { remoteAddress } = socket;
    // Without an address: the client has reset the connection already.
    const key = remoteAddress === undefined ? null : rateLimitKey(remoteAddress);
    if (key === null || this.#isFull(key)) {
      socket.destroy();
      return false;
    }
    this.#connections.set(socket, key);
    socket.once('close', () => {
      this.#connections.delete(socket);
      if (this.size === 0) this.#onDrained?.();
    });
    return true;
  }

  /** Resolves when all connections are closed. */
  async drain(): Promise<void> {
    if (this.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrained = resolve;
    await promise;
  }

  #isFull(key: string): boolean {
    const { total, perAddress } = this.#limits;
    return this.size >= total || [...this.#connections.values()].filter((other) => other === key).length >= perAddress;
  }
}

import type { Socket } from 'node:net';
import { admit, type QuotaHolder } from '../system/limits/fair-share.ts';
import { rateLimitKeys } from '../system/limits/rate-limit-keys.ts';

/** Maximum numbers of simultaneous connections. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perDevice: number;
}

const DEFAULT_LIMITS: ConnectionLimits = { total: 1000, perDevice: 250 };

/** The quota for all connections together. */
const TOTAL_KEY = 'all';

interface TrackedConnection extends QuotaHolder {
  readonly socket: Socket;
}

/**
 * Limits the connections of a server, so that no device can lock the others out: if there are too many, the device with
 * the most connections loses its oldest one to a device with fewer.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  /** Oldest first. */
  readonly #connections = new Set<TrackedConnection>();
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
    return [...this.#connections].map(({ socket }) => socket);
  }

  /**
   * Admits or closes a new connection; to admit it, may close a connection of another device. @returns whether it is
   * admitted
   */
  admit(socket: Socket): boolean {
    const connection = this.#track(socket);
    if (connection === null) {
      socket.destroy();
      return false;
    }
    this.#connections.add(connection);
    socket.once('close', () => this.#untrack(connection));
    return true;
  }

  /** Resolves when all connections are closed. */
  async drain(): Promise<void> {
    if (this.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrained = resolve;
    await promise;
  }

  #track(socket: Socket): TrackedConnection | null {
    const { remoteAddress } = socket;
    // The client has reset the connection already.
    if (remoteAddress === undefined) return null;
    const { total, perDevice } = this.#limits;
    const device = rateLimitKeys(remoteAddress).map(({ key, weight }) => ({ key, limit: weight * perDevice }));
    const quotas = [{ key: TOTAL_KEY, limit: total }, ...device];
    const admission = admit(quotas, [...this.#connections]);
    if (admission.kind === 'full') return null;
    if (admission.kind === 'instead_of') {
      this.#untrack(admission.holder);
      admission.holder.socket.destroy();
    }
    return { socket, keys: quotas.map(({ key }) => key) };
  }

  #untrack(connection: TrackedConnection): void {
    this.#connections.delete(connection);
    if (this.size === 0) this.#onDrained?.();
  }
}

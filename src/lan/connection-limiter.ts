import type { Socket } from 'node:net';
import { admit, type QuotaHolder } from '../system/limits/fair-share.ts';
import { rateLimitKeys } from '../system/limits/rate-limit-keys.ts';

/** How many connections there may be at a time. */
export interface ConnectionLimits {
  readonly total: number;
  readonly perDevice: number;
}

const DEFAULT_LIMITS: ConnectionLimits = { total: 1000, perDevice: 250 };

/** The quota of all connections together. */
const TOTAL_KEY = 'all';

interface TrackedConnection extends QuotaHolder {
  readonly socket: Socket;
}

/**
 * Limits the connections of a server, so that no device shuts the others out: if there are too many, the device that has most
 * loses its oldest one to a device that has less.
 */
export class ConnectionLimiter {
  readonly #limits: ConnectionLimits;
  /** The oldest first. */
  readonly #connections = new Set<TrackedConnection>();
  /** Called when none is left; null while new ones are expected. */
  #onDrained: (() => void) | null = null;

  constructor(limits: ConnectionLimits = DEFAULT_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** The open connections, also those that are still in the TLS handshake. */
  get sockets(): readonly Socket[] {
    return [...this.#connections].map(({ socket }) => socket);
  }

  /** Closes a new connection if it is one too many, else another one that gives way to it. @returns whether it may be served */
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

  /** Resolves when no connection is left. */
  async drain(): Promise<void> {
    if (this.size === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onDrained = resolve;
    await promise;
  }

  #track(socket: Socket): TrackedConnection | null {
    const { remoteAddress } = socket;
    // It was reset before it came here.
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

import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import type { Clock, Timers } from '../../core/clock.ts';

export interface CloneDetectorOptions {
  /** The hub's CA certificate at this moment, PEM. One that it had before is worth nothing: its key may have been stolen. */
  caCertificate(): string;
  /** The certificate that the hub's own server shows at this moment, PEM. */
  ownLeaf(): string;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** For how long one check waits for the other server, in ms. */
const TIMEOUT = 3000;

/** After a check that proved nothing the next one waits, in ms: twice as long each time. */
const MIN_BACKOFF = 10_000;
const MAX_BACKOFF = 600_000;

/**
 * Finds out whether another server has this hub's CA key, as a copy of its card has. The server has to complete a TLS handshake with
 * a leaf that this key has signed for just the address that is asked. So a device that relays the connection to this hub proves
 * nothing: the hub's own leaf is for its own addresses. The validity period does not count, since a hub may boot
 * with a wrong clock. Nothing is sent but a ClientHello without a server name.
 *
 * Anybody on the network can bring a check about, so there is one at a time, and none during the backoff.
 */
export class CloneDetector {
  readonly #options: CloneDetectorOptions;
  #busy = false;
  #backoff = 0;
  /** On the boot clock, in ms. */
  #nextCheckAt = Number.NEGATIVE_INFINITY;

  constructor(options: CloneDetectorOptions) {
    this.#options = options;
  }

  /**
   * Whether the server proves to be a copy of this hub; false also where that was not looked at.
   * @param address an IP address
   * @param signal ends it early
   */
  async isClone(address: string, port: number, signal: AbortSignal): Promise<boolean> {
    const { clock } = this.#options;
    if (this.#busy || signal.aborted || clock.now().uptime < this.#nextCheckAt) return false;
    this.#busy = true;
    try {
      const leaf = await this.#fetchCertificate(address, port, signal);
      const isProven = leaf !== null && this.#provesClone(leaf, address);
      this.#backoff = isProven ? 0 : Math.min(Math.max(2 * this.#backoff, MIN_BACKOFF), MAX_BACKOFF);
      this.#nextCheckAt = clock.now().uptime + this.#backoff;
      return isProven;
    } finally {
      this.#busy = false;
    }
  }

  #provesClone(leaf: X509Certificate, address: string): boolean {
    if (leaf.checkIP(address) === undefined) return false;
    // The own leaf may be for an address that a router translates to this hub.
    if (leaf.raw.equals(new X509Certificate(this.#options.ownLeaf()).raw)) return false;
    try {
      return leaf.verify(new X509Certificate(this.#options.caCertificate()).publicKey);
    } catch {
      return false; // a signature of another kind than this key's
    }
  }

  /** The leaf whose key the server has; null where no handshake was completed. */
  #fetchCertificate(address: string, port: number, signal: AbortSignal): Promise<X509Certificate | null> {
    const { promise, resolve } = Promise.withResolvers<X509Certificate | null>();
    // Whose leaf it is decides who has the key, and that is looked at here.
    const socket = connect({ host: address, port, rejectUnauthorized: false });
    socket.on('secureConnect', () => resolve(socket.getPeerX509Certificate() ?? null));
    socket.on('error', () => resolve(null)).on('close', () => resolve(null));
    const end = () => resolve(null);
    const cancel = this.#options.timers.after(TIMEOUT, end);
    signal.addEventListener('abort', end);
    return promise.finally(() => {
      cancel();
      signal.removeEventListener('abort', end);
      socket.destroy();
    });
  }
}

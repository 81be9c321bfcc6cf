import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import type { Clock, Timers } from '../../core/clock.ts';

interface CloneDetectorOptions {
  /** The hub's current CA certificate, PEM. A former one proves nothing, because its key may have been stolen. */
  caCertificate(): string;
  /** The current server certificate of this hub, PEM. */
  ownLeaf(): string;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** How long a check waits for the other server, in ms. */
const TIMEOUT = 3000;

/** The backoff after a check without proof, in ms; it doubles each time. */
const MIN_BACKOFF = 10_000;
const MAX_BACKOFF = 600_000;

/**
 * Finds out whether another server has this hub's CA key, which a copy of its SD card would have. The server must
 * complete a TLS handshake with a leaf certificate that this key has signed for the address that was connected to. So a
 * device that relays the connection to this hub proves nothing, because the hub's own leaf certificate is for the hub's
 * addresses. The validity period is ignored, since a hub may boot with a wrong clock. The check sends only a
 * ClientHello without a server name.
 *
 * Any device on the network can trigger a check, so only one runs at a time, and none during the backoff.
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
   * Whether the server proves to be a clone of this hub; false also if the check was skipped.
   * @param address an IP address
   * @param signal aborts the check
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
    // The hub's own leaf certificate may be for an address that a router translates to this hub.
    if (leaf.raw.equals(new X509Certificate(this.#options.ownLeaf()).raw)) return false;
    try {
      return leaf.verify(new X509Certificate(this.#options.caCertificate()).publicKey);
    } catch {
      return false; // the signature algorithm does not match this key
    }
  }

  /**
   * The server's leaf certificate, after a handshake that proves that it has the key; null if there was no handshake.
   */
  #fetchCertificate(address: string, port: number, signal: AbortSignal): Promise<X509Certificate | null> {
    const { promise, resolve } = Promise.withResolvers<X509Certificate | null>();
    // `#provesClone` verifies the certificate.
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

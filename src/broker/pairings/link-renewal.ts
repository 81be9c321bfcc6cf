import { backoffDelay } from '../../core/grants/backoff.ts';
import type { Environment } from '../environment.ts';
import type { LinkRequests } from './link-requests.ts';
import type { PairingRunner } from './pairing-runner.ts';

const BACKOFF = { base: 2000, cap: 30_000 };
/** Address changes cause fresh links at most this often, in ms. */
const MIN_RENEWAL_INTERVAL_MS = 10_000;

/** Requests a fresh link for the installer of one pairing if the hub's address changes. */
export class LinkRenewal {
  readonly #environment: Pick<Environment, 'clock' | 'random'>;
  readonly #state: PairingRunner;
  readonly #links: LinkRequests;
  /** When the portal was last asked, on the boot clock in ms. */
  #lastRequestAt = Number.NEGATIVE_INFINITY;
  /** Ends the current wait. */
  #addressChange = new AbortController();

  constructor(environment: Pick<Environment, 'clock' | 'random'>, state: PairingRunner, links: LinkRequests) {
    this.#environment = environment;
    this.#state = state;
    this.#links = links;
  }

  /** The hub has another address, or none. */
  onAddressChanged(): void {
    this.#addressChange.abort();
    this.#addressChange = new AbortController();
  }

  /**
   * Renews links until the pairing changes its step. No request is sent while there is no address, or if the address
   * returns to one that an existing link redirects to.
   */
  async run(): Promise<void> {
    const { clock, random } = this.#environment;
    const { signal } = this.#state;
    for (let failures = 0; this.#isActive(signal); ) {
      const ended = AbortSignal.any([signal, this.#addressChange.signal]);
      const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
      const delay = this.#links.needsRenewal
        ? this.#lastRequestAt + Math.max(MIN_RENEWAL_INTERVAL_MS, backoff) - clock.now().uptime
        : Number.POSITIVE_INFINITY;
      if (delay > 0) {
        if (!(await this.#state.pause(delay, ended))) failures = 0;
        continue;
      }
      this.#lastRequestAt = clock.now().uptime;
      failures = (await this.#links.renew()) ? 0 : failures + 1;
    }
  }

  /** A pairing that has just expired stays in its step until that is written. */
  #isActive(signal: AbortSignal): boolean {
    const { isRunning, pairing } = this.#state;
    return !signal.aborted && isRunning && pairing.step.kind === 'waiting';
  }
}

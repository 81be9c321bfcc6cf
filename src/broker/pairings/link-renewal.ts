import { backoffDelay } from '../../core/grants/backoff.ts';
import type { Environment } from '../environment.ts';
import type { LinkRequests } from './link-requests.ts';
import type { PairingProgress } from './pairing-progress.ts';

const BACKOFF = { base: 2000, cap: 30_000 };
/** No two fresh links because of the address come sooner after one another, however often it changes, in ms. */
const REST = 10_000;

/** Gives the installer of one pairing a fresh link where the hub's address has changed. */
export class LinkRenewal {
  readonly #environment: Pick<Environment, 'clock' | 'random'>;
  readonly #progress: PairingProgress;
  readonly #links: LinkRequests;
  /** When the portal was asked last, on the boot clock in ms. */
  #asked = Number.NEGATIVE_INFINITY;
  /** Ends the wait under way. */
  #moved = new AbortController();

  constructor(environment: Pick<Environment, 'clock' | 'random'>, progress: PairingProgress, links: LinkRequests) {
    this.#environment = environment;
    this.#progress = progress;
    this.#links = links;
  }

  /** The hub has another address, or none. */
  addressChanged(): void {
    this.#moved.abort();
    this.#moved = new AbortController();
  }

  /**
   * Sees to it until the pairing comes to another step. Nothing is asked for while there is no address, and nothing where one
   * comes back that a link at hand leads to.
   */
  async keep(): Promise<void> {
    const { clock, random } = this.#environment;
    const { signal } = this.#progress;
    for (let failures = 0; this.#goesOn(signal); ) {
      const ended = AbortSignal.any([signal, this.#moved.signal]);
      const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
      const rest = this.#links.renewalWanted
        ? this.#asked + Math.max(REST, backoff) - clock.now().uptime
        : Number.POSITIVE_INFINITY;
      if (rest > 0) {
        if (!(await this.#progress.pause(rest, ended))) failures = 0;
        continue;
      }
      this.#asked = clock.now().uptime;
      failures = (await this.#links.renew()) ? 0 : failures + 1;
    }
  }

  /** A pairing that has just run out is still being written down, and until then its step goes on. */
  #goesOn(signal: AbortSignal): boolean {
    const { stopping, pairing } = this.#progress;
    return !signal.aborted && !stopping && pairing.step.kind === 'waiting';
  }
}

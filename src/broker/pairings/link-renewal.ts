import { backoffDelay } from '../../core/grants/backoff.ts';
import type { Environment } from '../environment.ts';
import type { LinkRequests } from './link-requests.ts';
import type { PairingStateMachine } from './pairing-state-machine.ts';

const BACKOFF = { base: 2000, cap: 30_000 };
/** No two fresh links because of the address come sooner after one another, however often it changes, in ms. */
const MIN_RENEWAL_INTERVAL_MS = 10_000;

/** Gives the installer of one pairing a fresh link where the hub's address has changed. */
export class LinkRenewal {
  readonly #environment: Pick<Environment, 'clock' | 'random'>;
  readonly #state: PairingStateMachine;
  readonly #links: LinkRequests;
  /** When the portal was asked last, on the boot clock in ms. */
  #lastRequestAt = Number.NEGATIVE_INFINITY;
  /** Ends the wait under way. */
  #addressChange = new AbortController();

  constructor(environment: Pick<Environment, 'clock' | 'random'>, state: PairingStateMachine, links: LinkRequests) {
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
   * Sees to it until the pairing comes to another step. Nothing is asked for while there is no address, and nothing where one
   * comes back that a link at hand leads to.
   */
  async run(): Promise<void> {
    const { clock, random } = this.#environment;
    const { signal } = this.#state;
    for (let failures = 0; this.#isActive(signal); ) {
      const ended = AbortSignal.any([signal, this.#addressChange.signal]);
      const backoff = failures === 0 ? 0 : backoffDelay(BACKOFF, failures, random.fraction());
      const rest = this.#links.needsRenewal
        ? this.#lastRequestAt + Math.max(MIN_RENEWAL_INTERVAL_MS, backoff) - clock.now().uptime
        : Number.POSITIVE_INFINITY;
      if (rest > 0) {
        if (!(await this.#state.pause(rest, ended))) failures = 0;
        continue;
      }
      this.#lastRequestAt = clock.now().uptime;
      failures = (await this.#links.renew()) ? 0 : failures + 1;
    }
  }

  /** A pairing that has just run out is still being written down, and until then its step goes on. */
  #isActive(signal: AbortSignal): boolean {
    const { stopping, pairing } = this.#state;
    return !signal.aborted && !stopping && pairing.step.kind === 'waiting';
  }
}

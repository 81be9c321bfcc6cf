import type { Appliance } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Callback } from '../core/lan-service.ts';
import { advance, type DeviceFlow, type FailureReason, type Pairing } from '../core/pairing.ts';
import { sha256 } from '../system/compare.ts';
import type { PairingContext } from './pairing-context.ts';
import { PairingRun } from './pairing-run.ts';
import { within } from './within.ts';

/** A person who was sent back by the portal waits no longer than this for a result, in ms. */
const LONGEST_WAIT = 10_000;
/** Bytes of a nonce: 128 bits. */
const NONCE_BYTES = 16;
/** Pairings that are open at once: each polls the portal every few seconds. */
const MOST_OPEN = 100;
/** How many ended pairings are remembered, so that their result page can be shown again. */
const ENDED_REMEMBERED = 1000;

/** The pairings, at most one open for each appliance. */
export class Pairings implements AsyncDisposable {
  readonly #context: PairingContext;
  readonly #runs = new Map<string, PairingRun>();
  readonly #byAppliance = new Map<string, PairingRun>();

  constructor(context: PairingContext) {
    this.#context = context;
  }

  /** Takes up the pairings that the last run left; the newest of each appliance goes on where it is open. */
  async load(): Promise<void> {
    const kept = await this.#context.store.pairings();
    const newest = new Map(kept.map(({ appliance, id }) => [appliance, id]));
    for (const pairing of kept) {
      const goesOn = newest.get(pairing.appliance) === pairing.id;
      const taken = goesOn ? pairing : advance(pairing, { kind: 'failed', reason: 'replaced' });
      this.#remember(PairingRun.resume(this.#context, taken));
    }
  }

  /**
   * Starts a pairing; one that is open for the appliance is replaced by it.
   * @param device where the appliance itself starts it
   * @throws Failure `not_allowed` where too many are open, or as the store
   */
  async begin({ id, portal, scope }: Appliance, device: DeviceFlow | null = null): Promise<PairingRun> {
    const { random, clock } = this.#context.surroundings;
    const others = [...this.#byAppliance].filter(([other, run]) => other !== id && run.open);
    if (others.length >= MOST_OPEN) {
      throw new Failure('not_allowed', `${MOST_OPEN} pairings are open: wait until one of them has ended`);
    }
    const pairing: Pairing = {
      id: random.uuid(),
      appliance: id,
      portal,
      scope,
      nonce: random.token(NONCE_BYTES),
      begun: clock.now(),
      lifetime: this.#context.times.lifetime,
      spentCodes: [],
      setback: null,
      device,
      step: { kind: 'asking' },
    };
    await this.#context.store.savePairing(pairing);
    // Only now, so that one that can't be begun replaces none; and again while others are begun at the same time.
    for (let open = this.#open(id); open !== undefined; open = this.#open(id)) await open.fail('replaced');
    const run = PairingRun.resume(this.#context, pairing);
    this.#remember(run);
    return run;
  }

  /** @throws Failure `pairing_unknown` */
  get(id: string): PairingRun {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new Failure('pairing_unknown', 'this pairing is not known any more: start another with "latchkey pair"');
  }

  /** The newest pairing that fits, open or ended. */
  find(fits: (run: PairingRun) => boolean): PairingRun | undefined {
    return [...this.#runs.values()].findLast(fits);
  }

  /** The newest pairing of an appliance, open or ended. */
  ofAppliance(appliance: string): PairingRun | undefined {
    return this.#byAppliance.get(appliance);
  }

  /** The hub's clock was set: see `PairingRun`. */
  clockSet(): void {
    for (const run of this.#runs.values()) run.clockSet();
  }

  /** Ends the open pairing of an appliance, if there is one. */
  async end(appliance: string, reason: FailureReason): Promise<void> {
    await this.#byAppliance.get(appliance)?.fail(reason);
  }

  /** Forgets the pairings of an appliance that was removed. */
  async drop(appliance: string): Promise<void> {
    await this.end(appliance, 'cancelled');
    this.#byAppliance.delete(appliance);
    for (const [id, run] of this.#runs) if (run.pairing.appliance === appliance) this.#runs.delete(id);
  }

  /**
   * Takes what the portal's redirect brought.
   * @returns the pairing, as far as it has come within the time that a person waits; null for a nonce nobody gave out
   */
  async receive(nonce: string, callback: Callback): Promise<Pairing | null> {
    const hash = sha256(nonce);
    const run = this.find(({ nonceHash }) => nonceHash === hash);
    if (run === undefined) return null;
    if (callback.kind === 'code') {
      await within(run.takeCode(callback.code), LONGEST_WAIT, this.#context.surroundings.timers);
    }
    if (callback.kind === 'error') {
      await run.fail(callback.error === 'access_denied' ? 'refused_by_user' : 'portal_rejected');
    }
    return run.pairing;
  }

  /** Stops polling; the pairings stay open, and go on when the hub is started again. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#runs.values()].map((run) => run[Symbol.asyncDispose]()));
  }

  #open(appliance: string): PairingRun | undefined {
    const run = this.#byAppliance.get(appliance);
    return run?.open ? run : undefined;
  }

  #remember(run: PairingRun): void {
    this.#runs.set(run.pairing.id, run);
    this.#byAppliance.set(run.pairing.appliance, run);
    if (this.#runs.size <= ENDED_REMEMBERED) return;
    for (const [id, { open }] of this.#runs) {
      if (open) continue;
      this.#runs.delete(id);
      break;
    }
  }
}

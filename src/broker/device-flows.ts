import { type Appliance, sameScope } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { DeviceOutcome, DevicePoll, LinkResult } from '../core/lan-service.ts';
import { codesLive, type Pairing } from '../core/pairing.ts';
import { Secret } from '../core/secret.ts';
import { newUserCode, readUserCode } from '../core/user-code.ts';
import { type Allowance, Buckets } from '../system/allowances.ts';
import { sha256 } from '../system/compare.ts';
import type { PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';
import type { Surroundings } from './surroundings.ts';

/** Bytes of a device_code: 256 bits. */
const CODE_BYTES = 32;
/** How often one appliance may begin: an owner who tries again is welcome, a loop is not. */
const BEGINNINGS: Allowance = { most: 5, every: 10_000 };
/** Where too many pairings are open, one of them ends within minutes; in seconds. */
const RETRY_WHEN_FULL = 60;
/** Seconds between two polls, and how many more after one that came too soon (RFC 8628, 3.5). */
const INTERVAL = 5;
/** A poll may be so much early, in ms: the line is quicker at one time than at another, and clocks differ. */
const TOLERANCE = 500;

/** How an appliance has polled: of this run of the hub only. */
interface Polls {
  /** Seconds. */
  readonly interval: number;
  /** On the boot clock, in ms. */
  readonly last: number;
}

/** Pairings that appliances start themselves (RFC 8628). */
export class DeviceFlows {
  readonly #pairings: Pairings;
  readonly #surroundings: Surroundings;
  readonly #beginnings = new Buckets();
  readonly #polls = new WeakMap<PairingRun, Polls>();
  /** User codes of pairings that are just being written down. */
  readonly #fresh = new Set<string>();

  constructor(pairings: Pairings, surroundings: Surroundings) {
    this.#pairings = pairings;
    this.#surroundings = surroundings;
  }

  /**
   * Starts a pairing. The portal is asked for nothing until a person opens it, however often an appliance does this.
   * @param scope what the appliance asks for; null where it does not say
   * @throws Failure as the store
   */
  async begin(appliance: Appliance, scope: string | null): Promise<DeviceOutcome> {
    const { clock, random, log } = this.#surroundings;
    if (scope !== null && !sameScope(scope, appliance.scope)) return { kind: 'other_scope', scope: appliance.scope };
    const allowed = this.#beginnings.filled(appliance.id, BEGINNINGS, clock.now().uptime);
    if (allowed.left < 1) {
      return {
        kind: 'unavailable',
        retryAfter: Math.max(1, Math.ceil(Math.round((1 - allowed.left) * BEGINNINGS.every) / 1000)),
      };
    }
    allowed.left -= 1;
    const deviceCode = new Secret(random.token(CODE_BYTES));
    const userCode = this.#newUserCode();
    this.#fresh.add(userCode);
    try {
      const run = await this.#pairings.begin(appliance, { codeHash: sha256(deviceCode.reveal()), userCode });
      log.info('pairing begun by its appliance', { appliance: appliance.name });
      const expiresIn = Math.floor(run.timeLeft / 1000);
      return { kind: 'begun', authorization: { deviceCode, userCode, expiresIn, interval: INTERVAL } };
    } catch (error) {
      if (!(error instanceof Failure && error.code === 'not_allowed')) throw error;
      return { kind: 'unavailable', retryAfter: RETRY_WHEN_FULL };
    } finally {
      this.#fresh.delete(userCode);
    }
  }

  /** How a device flow stands; each call is one poll. @param appliance its id */
  poll(appliance: string, deviceCode: string): DevicePoll {
    const hash = sha256(deviceCode);
    const run = this.#pairings.find(
      ({ pairing }) => pairing.device?.codeHash === hash && pairing.appliance === appliance,
    );
    if (run === undefined) return { kind: 'unknown' };
    if (!this.#known(run)) return { kind: 'failed', reason: 'expired' };
    const { step } = run.pairing;
    if (step.kind === 'ended') return step.result.kind === 'paired' ? { kind: 'paired' } : step.result;
    return this.#tooSoon(run) ? { kind: 'slow_down' } : { kind: 'pending' };
  }

  /** The pairing that a user code stands for, however it was typed. */
  byUserCode(userCode: string): Pairing | null {
    return this.#runOf(userCode)?.pairing ?? null;
  }

  /** A fresh link for the pairing of a user code. */
  async openLink(userCode: string): Promise<LinkResult> {
    return (await this.#runOf(userCode)?.openLink()) ?? { kind: 'over' };
  }

  #runOf(typed: string): PairingRun | undefined {
    const userCode = readUserCode(typed);
    if (userCode === null) return undefined;
    return this.#pairings.find((run) => run.pairing.device?.userCode === userCode && this.#known(run));
  }

  /** An open one is known in any case: its code may be on the way to the portal when its time ends. */
  #known(run: PairingRun): boolean {
    return run.open || codesLive(run.pairing, this.#surroundings.clock.now());
  }

  #newUserCode(): string {
    for (;;) {
      const userCode = newUserCode(this.#surroundings.random);
      if (!this.#fresh.has(userCode) && this.byUserCode(userCode) === null) return userCode;
    }
  }

  /** Notes a poll. @returns whether the one before was too short a time ago, and then the interval grows (RFC 8628, 3.5) */
  #tooSoon(run: PairingRun): boolean {
    const now = this.#surroundings.clock.now().uptime;
    const { interval, last } = this.#polls.get(run) ?? { interval: INTERVAL, last: Number.NEGATIVE_INFINITY };
    const early = now - last < interval * 1000 - TOLERANCE;
    this.#polls.set(run, { interval: early ? interval + INTERVAL : interval, last: now });
    return early;
  }
}

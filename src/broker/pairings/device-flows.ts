import { type Appliance, sameScope } from '../../core/appliances/appliance.ts';
import type { DeviceOutcome, DevicePoll, LinkResult } from '../../core/lan-service.ts';
import { USER_CODE } from '../../core/letter-code.ts';
import { codesLive, type DeviceCodes, type DeviceFlow, type Pairing } from '../../core/pairings/pairing.ts';
import { Secret } from '../../core/secret.ts';
import { sha256 } from '../../system/compare.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-bucket.ts';
import type { Environment } from '../environment.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import type { PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';

/** Bytes of a device_code: 256 bits. */
const CODE_BYTES = 32;
/** How often one appliance may begin: an owner who tries again is welcome, a loop is not. Each is written to disk. */
const BEGINNINGS: RateLimit = { burst: 10, interval: 60_000 };
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
  readonly #environment: Environment;
  readonly #beginnings = new TokenBuckets();
  readonly #polls = new WeakMap<DeviceFlow, Polls>();
  /** Appliances that begin again and again, because nobody opens their pairings. */
  readonly #unopened: LogDeduplicator;
  /** User codes of pairings that are just being written down. */
  readonly #fresh = new Set<string>();

  constructor(pairings: Pairings, environment: Environment) {
    this.#pairings = pairings;
    this.#environment = environment;
    this.#unopened = new LogDeduplicator(environment.clock);
  }

  /**
   * Starts a device flow. The portal is asked for nothing until a person opens it, however often an appliance does this.
   * @param scope what the appliance asks for; null where it does not say
   * @throws Failure as the store
   */
  async begin(appliance: Appliance, scope: string | null): Promise<DeviceOutcome> {
    const { random, log } = this.#environment;
    if (scope !== null && !sameScope(scope, appliance.scope)) return { kind: 'other_scope', scope: appliance.scope };
    const wait = this.#mayBeginIn(appliance.id);
    if (wait > 0) return { kind: 'unavailable', retryAfter: Math.max(1, Math.ceil(Math.round(wait) / 1000)) };
    const deviceCode = new Secret(random.token(CODE_BYTES));
    const userCode = this.#newUserCode();
    this.#fresh.add(userCode);
    try {
      const codes = { codeHash: sha256(deviceCode.reveal()), userCode };
      const run = await this.#pairings.beginByAppliance(appliance, codes);
      const told = this.#unopened.occurred(appliance.id, appliance.id);
      const level = told === null ? 'debug' : 'info';
      log.at(level, 'pairing_started', { appliance: appliance.name, by: 'appliance', times: told?.times });
      const expiresIn = Math.floor(run.timeLeft / 1000);
      return { kind: 'begun', authorization: { deviceCode, userCode, expiresIn, interval: INTERVAL } };
    } finally {
      this.#fresh.delete(userCode);
    }
  }

  /** How a device flow stands; each call is one poll. @param appliance its id */
  poll(appliance: string, deviceCode: string): DevicePoll {
    const hash = sha256(deviceCode);
    const run = this.#pairings.find(
      ({ pairing }) => pairing.appliance === appliance && everyCodes(pairing).some(({ codeHash }) => codeHash === hash),
    );
    const device = run?.pairing.device ?? null;
    if (run === undefined || device === null) return { kind: 'unknown' };
    if (device.codeHash !== hash) return { kind: 'failed', reason: 'replaced' };
    if (!this.#known(run)) return { kind: 'failed', reason: 'expired' };
    const { step } = run.pairing;
    if (step.kind === 'ended' && step.result.kind === 'failed') {
      if (step.result.reason !== 'expired') this.#unopened.resolved(appliance);
      return step.result;
    }
    if (step.kind === 'ended') {
      this.#unopened.resolved(appliance);
      return { kind: 'paired' };
    }
    return this.#tooSoon(device) ? { kind: 'slow_down' } : { kind: 'pending' };
  }

  /** The pairing that a user code stands for, however it was typed; also where another has taken the code's place. */
  byUserCode(userCode: string): Pairing | null {
    return this.#runOf(userCode)?.pairing ?? null;
  }

  /** A fresh link for the pairing of a user code. */
  async openLink(userCode: string): Promise<LinkResult> {
    const run = this.#runOf(userCode);
    if (run === undefined || run.pairing.device?.userCode !== USER_CODE.read(userCode)) return { kind: 'over' };
    return this.#pairings.openLink(run);
  }

  #runOf(typed: string): PairingRun | undefined {
    const userCode = USER_CODE.read(typed);
    if (userCode === null) return undefined;
    const has = ({ pairing }: PairingRun) => everyCodes(pairing).some((codes) => codes.userCode === userCode);
    return this.#pairings.find((run) => has(run) && this.#known(run));
  }

  /** An open one is known in any case: its code may be on the way to the portal when its time ends. */
  #known(run: PairingRun): boolean {
    return run.open || codesLive(run.pairing, this.#environment.clock.now());
  }

  /** Takes one beginning from the appliance's allowance. @returns milliseconds until the next one, where there is none left */
  #mayBeginIn(appliance: string): number {
    const bucket = this.#beginnings.filled(appliance, BEGINNINGS, this.#environment.clock.now().uptime);
    if (bucket.left < 1) return (1 - bucket.left) * BEGINNINGS.interval;
    bucket.left -= 1;
    return 0;
  }

  #newUserCode(): string {
    for (;;) {
      const userCode = USER_CODE.make(this.#environment.random);
      if (!this.#fresh.has(userCode) && this.byUserCode(userCode) === null) return userCode;
    }
  }

  /** Notes a poll. @returns whether the one before was too short a time ago, and then the interval grows (RFC 8628, 3.5) */
  #tooSoon(device: DeviceFlow): boolean {
    const now = this.#environment.clock.now().uptime;
    const { interval, last } = this.#polls.get(device) ?? { interval: INTERVAL, last: Number.NEGATIVE_INFINITY };
    const early = now - last < interval * 1000 - TOLERANCE;
    this.#polls.set(device, { interval: early ? interval + INTERVAL : interval, last: now });
    return early;
  }
}

/** The codes of a pairing's device flow, and those that they took the place of. */
function everyCodes({ device }: Pairing): readonly DeviceCodes[] {
  return device === null ? [] : [device, ...(device.superseded ?? [])];
}

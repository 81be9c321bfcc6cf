import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { isWithinScope } from '../../core/connections/scope.ts';
import type { DeviceAuthorizationResult, DevicePollResult, LoginLinkResult } from '../../core/lan-service.ts';
import { USER_CODE_FORMAT } from '../../core/letter-code.ts';
import {
  areDeviceCodesRetained,
  type DeviceCodes,
  type DeviceFlow,
  type Pairing,
} from '../../core/pairings/pairing.ts';
import { Secret } from '../../core/secret.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-buckets.ts';
import { sha256 } from '../../system/secret-hash.ts';
import type { Environment } from '../ports.ts';
import { LogDeduplicator } from '../reports/log-deduplicator.ts';
import type { PairingRun } from './pairing-run.ts';
import type { Pairings } from './pairings.ts';

/** Bytes of a device_code: 256 bits. */
const DEVICE_CODE_BYTES = 32;
/**
 * Limits how often one appliance may start a device flow: enough for an owner who tries again, too few for a loop. Each
 * start is written to disk.
 */
const START_LIMIT: RateLimit = { burst: 10, interval: 60_000 };
/** Seconds between two polls, and the seconds added after a poll that came too soon (RFC 8628, 3.5). */
const POLL_INTERVAL_SECONDS = 5;
/** A poll may be early by this much, in ms: network delays vary, and clocks differ. */
const POLL_TOLERANCE_MS = 500;

/** When an appliance with a damaged connection may try again, in seconds. */
const DAMAGED_RETRY_SECONDS = 60;

/** How an appliance has polled in this run of the hub. */
interface PollState {
  /** Seconds. */
  readonly interval: number;
  /** On the boot clock, in ms. */
  readonly lastPollAt: number;
}

/** Pairings that appliances start themselves (RFC 8628). */
export class DeviceFlows {
  readonly #pairings: Pairings;
  readonly #environment: Environment;
  readonly #startBuckets = new TokenBuckets();
  readonly #pollStates = new WeakMap<DeviceFlow, PollState>();
  /** Appliances that start flow after flow, because nobody opens their pairings. */
  readonly #unopened: LogDeduplicator;

  constructor(pairings: Pairings, environment: Environment) {
    this.#pairings = pairings;
    this.#environment = environment;
    this.#unopened = new LogDeduplicator(environment.clock);
  }

  /**
   * Starts a device flow. The portal gets no request until a person opens it, however often an appliance does this.
   * @param scope the scope that the appliance requests; null if it names none
   * @throws Failure as {@link Store}
   */
  async begin(appliance: Appliance, connection: Connection, scope: string | null): Promise<DeviceAuthorizationResult> {
    const { clock, random, log } = this.#environment;
    if (!isWithinScope(scope, connection.scope)) return { kind: 'other_scope', scope: connection.scope };
    // Until a person has removed the connection, a login would give nothing.
    if (connection.damaged) return { kind: 'unavailable', retryAfter: DAMAGED_RETRY_SECONDS };
    const wait = this.#startBuckets.take(appliance.id, START_LIMIT, clock.now().uptime);
    if (wait > 0) return { kind: 'unavailable', retryAfter: Math.max(1, Math.ceil(Math.round(wait) / 1000)) };
    const deviceCode = new Secret(random.token(DEVICE_CODE_BYTES));
    const userCode = USER_CODE_FORMAT.generate(random);
    const codes = { codeHash: sha256(deviceCode.reveal()), userCode };
    const run = await this.#pairings.beginDeviceFlow(connection, appliance.id, codes);
    const summary = this.#unopened.recordOccurrence(appliance.id, appliance.id);
    const level = summary === null ? 'debug' : 'info';
    log.at(level, 'pairing_started', { connection: connection.name, by: 'appliance', times: summary?.occurrences });
    const expiresIn = Math.floor(run.runner.timeLeft / 1000);
    return { kind: 'begun', authorization: { deviceCode, userCode, expiresIn, interval: POLL_INTERVAL_SECONDS } };
  }

  /**
   * The state of a device flow; each call counts as one poll.
   * @param appliance its id
   * @returns `connection`: its id
   */
  poll(appliance: string, deviceCode: string): DevicePollResult {
    const hash = sha256(deviceCode);
    const run = this.#pairings.find(
      ({ pairing }) =>
        pairing.device?.appliance === appliance && allCodes(pairing).some(({ codeHash }) => codeHash === hash),
    );
    const device = run?.pairing.device ?? null;
    if (run === undefined || device === null) return { kind: 'unknown' };
    if (device.codeHash !== hash) return { kind: 'failed', reason: 'replaced' };
    if (!this.#isKnown(run)) return { kind: 'failed', reason: 'expired' };
    const { step } = run.pairing;
    if (step.kind === 'ended' && step.result.kind === 'failed') {
      if (step.result.reason !== 'expired') this.#unopened.recordResolution(appliance);
      return step.result;
    }
    if (step.kind === 'ended') {
      this.#unopened.recordResolution(appliance);
      return { kind: 'paired', connection: run.pairing.connection };
    }
    return this.#recordPoll(device) ? { kind: 'slow_down' } : { kind: 'pending' };
  }

  /** The pairing of a user code, in any spelling. A superseded user code finds it too. */
  findByUserCode(userCode: string): Pairing | null {
    return this.#findRun(userCode)?.pairing ?? null;
  }

  /** A fresh link for the pairing of a user code. */
  async openLink(userCode: string): Promise<LoginLinkResult> {
    return (await this.#findCurrentRun(userCode)?.openLink()) ?? { kind: 'over' };
  }

  /**
   * Lets the appliance of a user code use the grant that its connection has.
   * @param scope of the grant
   * @returns false if the user code is not the current one of an open device flow, or a login is under way
   * @throws Failure as {@link Store}
   */
  async approve(userCode: string, scope: string | null): Promise<boolean> {
    return (await this.#findCurrentRun(userCode)?.runner.request({ kind: 'approved', scope })) ?? false;
  }

  /** Ends the device flow of a user code as refused. */
  async refuse(userCode: string): Promise<void> {
    await this.#findCurrentRun(userCode)?.fail('refused_by_user');
  }

  /** The pairing whose current user code this is. */
  #findCurrentRun(userCode: string): PairingRun | undefined {
    const run = this.#findRun(userCode);
    return run?.pairing.device?.userCode === USER_CODE_FORMAT.parse(userCode) ? run : undefined;
  }

  #findRun(typed: string): PairingRun | undefined {
    const userCode = USER_CODE_FORMAT.parse(typed);
    if (userCode === null) return undefined;
    const has = ({ pairing }: PairingRun) => allCodes(pairing).some((codes) => codes.userCode === userCode);
    return this.#pairings.find((run) => has(run) && this.#isKnown(run));
  }

  /** An open pairing is always known: its code may be on the way to the portal when its time ends. */
  #isKnown(run: PairingRun): boolean {
    return run.isOpen || areDeviceCodesRetained(run.pairing, this.#environment.clock.now());
  }

  /**
   * Records a poll.
   * @returns whether it came too soon after the previous one; then the interval grows (RFC 8628, 3.5)
   */
  #recordPoll(device: DeviceFlow): boolean {
    const now = this.#environment.clock.now().uptime;
    const { interval, lastPollAt } = this.#pollStates.get(device) ?? {
      interval: POLL_INTERVAL_SECONDS,
      lastPollAt: Number.NEGATIVE_INFINITY,
    };
    const early = now - lastPollAt < interval * 1000 - POLL_TOLERANCE_MS;
    this.#pollStates.set(device, { interval: early ? interval + POLL_INTERVAL_SECONDS : interval, lastPollAt: now });
    return early;
  }
}

/** The codes of a pairing's device flow, and those that they replaced. */
function allCodes({ device }: Pairing): readonly DeviceCodes[] {
  return device === null ? [] : [device, ...(device.superseded ?? [])];
}

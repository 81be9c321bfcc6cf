import { type ConfirmedTime, confirmedTimeAt, type Instant, rfc3339 } from '../../core/clock.ts';
import { withTimeout } from '../../system/clock.ts';
import type { ConnectedPortals, Environment } from '../ports.ts';

/** The source of the true time. */
type TimeSource = 'portal' | 'ntp';

/** A hub clock that is off by more than this is logged as a warning, in ms. */
const MAX_CLOCK_ERROR_MS = 300_000;
/**
 * Two responses agree if they differ by no more than this, in ms: `Date` has whole seconds, and some responses are
 * slow.
 */
const AGREEMENT_TOLERANCE_MS = 10_000;
/** A portal is probed at most this often, in ms. */
const MIN_PROBE_INTERVAL = 30_000;
/** A caller that needs the time waits at most this long, in ms. */
const MAX_CONFIRMATION_WAIT = 5000;

/**
 * Holds the true time that NTP or the portals' `Date` reported; it gives the age of tokens from an earlier boot. The
 * clock of a portal may be wrong, so its time says nothing about the tokens of another one.
 */
export class ReferenceClock {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  #ntp: ConfirmedTime | null;
  /** By the portal's name: its latest time, and also the one before that if they disagree. */
  readonly #portals: Map<string, readonly [ConfirmedTime, ...ConfirmedTime[]]>;
  readonly #whenConfirmed: (() => void)[] = [];

  /** @param predecessor the clock of the hub that this one replaces */
  constructor(environment: Pick<Environment, 'clock' | 'log'>, predecessor?: ReferenceClock) {
    this.#environment = environment;
    this.#ntp = predecessor === undefined ? null : predecessor.#ntp;
    this.#portals = new Map(predecessor === undefined ? [] : predecessor.#portals);
  }

  /** The true time: NTP's, or else that of the portal in the middle of all. */
  get confirmed(): ConfirmedTime | null {
    if (this.#ntp !== null) return this.#ntp;
    const offsets = [...this.#portals.values()].map(([time]) => ({ time, offset: time.wall - time.at.uptime }));
    return offsets.sort((one, other) => one.offset - other.offset)[(offsets.length - 1) >> 1]?.time ?? null;
  }

  /** The true time that gives the age of a portal's tokens: NTP's, or else this portal's. @param portal its name */
  confirmedBy(portal: string): ConfirmedTime | null {
    return this.#ntp ?? this.#portals.get(portal)?.[0] ?? null;
  }

  /** The true time at an instant of this boot, as {@link confirmedBy} has it, in ms since 1970; null if unknown. */
  timeAt(portal: string, at: Instant): number | null {
    return confirmedTimeAt(this.confirmedBy(portal), at);
  }

  /** All known readings, NTP first, because a portal's clock may be wrong. */
  get readings(): readonly ConfirmedTime[] {
    return [this.#ntp, ...[...this.#portals.values()].flat()].filter((time) => time !== null);
  }

  /** Calls `listener` whenever NTP or a portal has given the time for the first time. */
  whenConfirmed(listener: () => void): void {
    this.#whenConfirmed.push(listener);
  }

  /**
   * @param portal its name
   * @param wall ms since 1970, from a response that has just arrived; null if it has none
   */
  recordPortalTime(portal: string, wall: number | null): void {
    if (wall === null) return;
    const at = this.#environment.clock.now();
    const [before = null] = this.#portals.get(portal) ?? [];
    const isDisagreeing = Math.abs((confirmedTimeAt(before, at) ?? wall) - wall) > AGREEMENT_TOLERANCE_MS;
    this.#record('portal', { wall, at }, before === null, (time) =>
      this.#portals.set(portal, before !== null && isDisagreeing ? [time, before] : [time]),
    );
  }

  /** NTP has set the hub's clock. */
  recordNtpTime(): void {
    const at = this.#environment.clock.now();
    this.#record('ntp', { wall: at.wall, at }, this.#ntp === null, (time) => {
      this.#ntp = time;
    });
  }

  #record(source: TimeSource, time: ConfirmedTime, isNew: boolean, keep: (time: ConfirmedTime) => void): void {
    const isFirst = this.confirmed === null;
    keep(time);
    if (isFirst) this.#logFirst(source, time);
    if (isNew) for (const listener of this.#whenConfirmed) listener();
  }

  #logFirst(source: TimeSource, { wall, at }: ConfirmedTime): void {
    const { log } = this.#environment;
    const aheadSeconds = Math.round((at.wall - wall) / 1000);
    log.info('clock_confirmed', { source, true_time: rfc3339(wall), hub_clock_ahead: aheadSeconds });
    if (Math.abs(at.wall - wall) > MAX_CLOCK_ERROR_MS) log.warn('clock_wrong', { hub_clock_ahead: aheadSeconds });
  }
}

/** A probe of one portal. */
interface Probe {
  /** Rejects if no response contained the time. */
  readonly result: Promise<void>;
  /** When the next one is allowed, on the boot clock in ms. */
  readonly nextAt: number;
}

/**
 * Asks portals for the time if it is needed and unknown: a hub without a paired appliance sends them no other requests.
 */
export class PortalTimeProbe {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  readonly #referenceClock: ReferenceClock;
  readonly #portals: Pick<ConnectedPortals, 'names' | 'get'>;
  readonly #probes = new Map<string, Probe>();

  constructor(
    environment: Pick<Environment, 'clock' | 'timers'>,
    referenceClock: ReferenceClock,
    portals: Pick<ConnectedPortals, 'names' | 'get'>,
  ) {
    this.#environment = environment;
    this.#referenceClock = referenceClock;
    this.#portals = portals;
  }

  /**
   * Resolves when the time is known, or when waiting longer is useless.
   * @param portal the name of the one whose tokens need it; undefined if any source will do
   * @param deadline when the caller needs to go on at the latest, on the boot clock in ms
   */
  async confirm(portal?: string, deadline = Number.POSITIVE_INFINITY): Promise<void> {
    const known = portal === undefined ? this.#referenceClock.confirmed : this.#referenceClock.confirmedBy(portal);
    if (known !== null) return;
    const probes = (portal === undefined ? this.#portals.names : [portal]).map((name) => this.#probe(name));
    const { clock, timers } = this.#environment;
    const timeout = Math.min(MAX_CONFIRMATION_WAIT, deadline - clock.now().uptime);
    await withTimeout(
      Promise.any(probes).catch(() => undefined),
      timeout,
      timers,
    );
  }

  #probe(name: string): Promise<void> {
    const now = this.#environment.clock.now().uptime;
    const last = this.#probes.get(name);
    if (last !== undefined && now < last.nextAt) return last.result;
    const result = this.#ask(name);
    this.#probes.set(name, { result, nextAt: now + MIN_PROBE_INTERVAL });
    return result;
  }

  async #ask(name: string): Promise<void> {
    const time = (await this.#portals.get(name)?.portal.fetchTime()) ?? null;
    if (time === null) throw new Error('no response contained the time');
    this.#referenceClock.recordPortalTime(name, time);
  }
}

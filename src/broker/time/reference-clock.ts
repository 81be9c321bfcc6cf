import { type ConfirmedTime, confirmedTimeAt } from '../../core/clock.ts';
import type { Portal } from '../../core/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import type { Environment } from '../environment.ts';

/** Who told the true time. */
type TimeSource = 'portal' | 'ntp';

/** A hub's clock that is off by more than this is worth a warning, in ms. */
const MAX_CLOCK_ERROR_MS = 300_000;
/** Two answers that differ by no more agree, in ms: a `Date` has whole seconds, and some answers come slowly. */
const AGREEMENT_TOLERANCE_MS = 10_000;
/** Portals are asked at most so often, in ms. */
const MIN_PROBE_INTERVAL = 30_000;
/** Who needs the time waits no longer than this for it, in ms. */
const MAX_WAIT = 5000;

/** Remembers the true time that a portal's `Date` or NTP told, so that tokens of an earlier boot can be aged by it. */
export class ReferenceClock {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  #portal: ConfirmedTime | null = null;
  /** What a portal's answer before had told, where the last one does not agree. */
  #disagreeing: ConfirmedTime | null = null;
  #ntp: ConfirmedTime | null = null;
  readonly #whenConfirmed: (() => void)[] = [];

  /** @param before what was told to a hub that this one takes the place of */
  constructor(environment: Pick<Environment, 'clock' | 'log'>, before?: ReferenceClock) {
    this.#environment = environment;
    if (before === undefined) return;
    this.#portal = before.#portal;
    this.#disagreeing = before.#disagreeing;
    this.#ntp = before.#ntp;
  }

  /** A portal's word counts for more than NTP's: its clock is what its tokens are measured by. */
  get confirmed(): ConfirmedTime | null {
    return this.#portal ?? this.#ntp;
  }

  /**
   * What each has told who told anything, NTP first: a portal's clock may be wrong too. Where its last two answers do not agree
   * there are both.
   */
  get readings(): readonly ConfirmedTime[] {
    return [this.#ntp, this.#portal, this.#disagreeing].filter((time) => time !== null);
  }

  /** Calls `listener` once, when the true time becomes known. */
  whenConfirmed(listener: () => void): void {
    this.#whenConfirmed.push(listener);
  }

  /** @param portalTime ms since 1970, as an answer that has just come says; null where it does not */
  recordPortalTime(portalTime: number | null): void {
    if (portalTime !== null) this.#record('portal', portalTime);
  }

  /** NTP has set the hub's clock. */
  recordNtpTime(): void {
    this.#record('ntp', this.#environment.clock.now().wall);
  }

  #record(source: TimeSource, wall: number): void {
    const { clock, log } = this.#environment;
    const first = this.confirmed === null;
    const at = clock.now();
    if (source === 'portal') {
      const expected = confirmedTimeAt(this.#portal, at) ?? wall;
      this.#disagreeing = Math.abs(expected - wall) > AGREEMENT_TOLERANCE_MS ? this.#portal : null;
      this.#portal = { wall, at };
    } else this.#ntp = { wall, at };
    if (!first) return;
    const off = Math.round((at.wall - wall) / 1000);
    log.info('clock_confirmed', { source, true_time: new Date(wall).toISOString(), hub_clock_ahead: off });
    if (Math.abs(at.wall - wall) > MAX_CLOCK_ERROR_MS) log.warn('clock_wrong', { hub_clock_ahead: off });
    for (const tell of this.#whenConfirmed) tell();
  }
}

/**
 * Asks the portals for the time where somebody needs it and nobody has told it: a hub on which no appliance is paired asks
 * them nothing else.
 */
export class PortalTimeProbe {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  readonly #referenceClock: ReferenceClock;
  readonly #portals: () => readonly Pick<Portal, 'fetchTime'>[];
  #inFlight: Promise<unknown> | null = null;
  /** When it may be asked again, on the boot clock in ms. */
  #nextProbeAt = Number.NEGATIVE_INFINITY;

  constructor(
    environment: Pick<Environment, 'clock' | 'timers'>,
    referenceClock: ReferenceClock,
    portals: () => readonly Pick<Portal, 'fetchTime'>[],
  ) {
    this.#environment = environment;
    this.#referenceClock = referenceClock;
    this.#portals = portals;
  }

  /** Resolves when the time is known, or when it is no use to wait for it any longer. */
  async confirm(): Promise<void> {
    const { clock, timers } = this.#environment;
    if (this.#referenceClock.confirmed !== null) return;
    const now = clock.now().uptime;
    if (this.#inFlight === null && now >= this.#nextProbeAt) {
      this.#nextProbeAt = now + MIN_PROBE_INTERVAL;
      this.#inFlight = this.#probe().finally(() => {
        this.#inFlight = null;
      });
    }
    if (this.#inFlight !== null) await withTimeout(this.#inFlight, MAX_WAIT, timers);
  }

  /** Resolves with the first portal's answer that tells the time, or when all have told nothing. */
  async #probe(): Promise<void> {
    const told = this.#portals().map(async (portal) => {
      const time = await portal.fetchTime();
      if (time === null) throw new Error('no answer tells the time');
      this.#referenceClock.recordPortalTime(time);
    });
    await Promise.any(told).catch(() => undefined);
  }
}

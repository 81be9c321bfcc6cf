import { type ConfirmedTime, confirmedTimeAt } from '../../core/clock.ts';
import type { Portal } from '../../core/portals/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import type { Environment } from '../environment.ts';

/** The source of the true time. */
type TimeSource = 'portal' | 'ntp';

/** A hub clock that is off by more than this is logged as a warning, in ms. */
const MAX_CLOCK_ERROR_MS = 300_000;
/**
 * Two responses agree if they differ by no more than this, in ms: `Date` has whole seconds, and some responses are
 * slow.
 */
const AGREEMENT_TOLERANCE_MS = 10_000;
/** Portals are probed at most this often, in ms. */
const MIN_PROBE_INTERVAL = 30_000;
/** A caller that needs the time waits at most this long, in ms. */
const MAX_WAIT = 5000;

/** Holds the true time that a portal's `Date` or NTP reported; it gives the age of tokens from an earlier boot. */
export class ReferenceClock {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  #portal: ConfirmedTime | null = null;
  /** The previous portal time, if the latest one does not agree with it. */
  #disagreeingTime: ConfirmedTime | null = null;
  #ntp: ConfirmedTime | null = null;
  readonly #whenConfirmed: (() => void)[] = [];

  /** @param predecessor the clock of the hub that this one replaces */
  constructor(environment: Pick<Environment, 'clock' | 'log'>, predecessor?: ReferenceClock) {
    this.#environment = environment;
    if (predecessor === undefined) return;
    this.#portal = predecessor.#portal;
    this.#disagreeingTime = predecessor.#disagreeingTime;
    this.#ntp = predecessor.#ntp;
  }

  /** The true time. A portal takes precedence over NTP, because its clock determines when its tokens expire. */
  get confirmed(): ConfirmedTime | null {
    return this.#portal ?? this.#ntp;
  }

  /**
   * All known readings, NTP first, because a portal's clock may be wrong too. If the last two portal times disagree,
   * both are included.
   */
  get readings(): readonly ConfirmedTime[] {
    return [this.#ntp, this.#portal, this.#disagreeingTime].filter((time) => time !== null);
  }

  /** Calls `listener` once when the true time becomes known. */
  whenConfirmed(listener: () => void): void {
    this.#whenConfirmed.push(listener);
  }

  /** @param portalTime ms since 1970, from a response that has just arrived; null if it has none */
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
      this.#disagreeingTime = Math.abs(expected - wall) > AGREEMENT_TOLERANCE_MS ? this.#portal : null;
      this.#portal = { wall, at };
    } else this.#ntp = { wall, at };
    if (!first) return;
    const aheadSeconds = Math.round((at.wall - wall) / 1000);
    log.info('clock_confirmed', { source, true_time: new Date(wall).toISOString(), hub_clock_ahead: aheadSeconds });
    if (Math.abs(at.wall - wall) > MAX_CLOCK_ERROR_MS) log.warn('clock_wrong', { hub_clock_ahead: aheadSeconds });
    for (const listener of this.#whenConfirmed) listener();
  }
}

/**
 * Asks the portals for the time if it is needed and unknown: a hub without a paired appliance sends them no other
 * requests.
 */
export class PortalTimeProbe {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  readonly #referenceClock: ReferenceClock;
  readonly #portals: () => readonly Pick<Portal, 'fetchTime'>[];
  #inFlight: Promise<unknown> | null = null;
  /** When the next probe is allowed, on the boot clock in ms. */
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

  /** Resolves when the time is known, or when waiting longer is useless. */
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

  /** Resolves with the first portal response that contains the time, or when no portal has given it. */
  async #probe(): Promise<void> {
    const probes = this.#portals().map(async (portal) => {
      const time = await portal.fetchTime();
      if (time === null) throw new Error('no response contained the time');
      this.#referenceClock.recordPortalTime(time);
    });
    await Promise.any(probes).catch(() => undefined);
  }
}

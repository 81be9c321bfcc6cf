import { type ConfirmedTime, trueTime } from '../../core/clock.ts';
import type { Portal } from '../../core/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import type { Environment } from '../environment.ts';

/** Who told the true time. */
type Source = 'portal' | 'ntp';

/** A hub's clock that is off by more than this is worth a warning, in ms. */
const WRONG = 300_000;
/** Two answers that differ by no more agree, in ms: a `Date` has whole seconds, and some answers come slowly. */
const AGREED = 10_000;
/** Portals are asked at most so often, in ms. */
const MIN_PROBE_INTERVAL = 30_000;
/** Who needs the time waits no longer than this for it, in ms. */
const MAX_WAIT = 5000;

/** Remembers the true time that a portal's `Date` or NTP told, so that tokens of an earlier boot can be aged by it. */
export class PortalClock {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  #portal: ConfirmedTime | null = null;
  /** What a portal's answer before had told, where the last one does not agree. */
  #earlier: ConfirmedTime | null = null;
  #ntp: ConfirmedTime | null = null;
  readonly #whenConfirmed: (() => void)[] = [];

  /** @param before what was told to a hub that this one takes the place of */
  constructor(environment: Pick<Environment, 'clock' | 'log'>, before?: PortalClock) {
    this.#environment = environment;
    if (before === undefined) return;
    this.#portal = before.#portal;
    this.#earlier = before.#earlier;
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
  get told(): readonly ConfirmedTime[] {
    return [this.#ntp, this.#portal, this.#earlier].filter((time) => time !== null);
  }

  /** Calls `listener` once, when the true time becomes known. */
  whenConfirmed(listener: () => void): void {
    this.#whenConfirmed.push(listener);
  }

  /** @param portalTime ms since 1970, as an answer that has just come says; null where it does not */
  learn(portalTime: number | null): void {
    if (portalTime !== null) this.#take('portal', portalTime);
  }

  /** NTP has set the hub's clock. */
  learnFromNtp(): void {
    this.#take('ntp', this.#environment.clock.now().wall);
  }

  #take(source: Source, wall: number): void {
    const { clock, log } = this.#environment;
    const first = this.confirmed === null;
    const at = clock.now();
    if (source === 'portal') {
      const expected = trueTime(this.#portal, at) ?? wall;
      this.#earlier = Math.abs(expected - wall) > AGREED ? this.#portal : null;
      this.#portal = { wall, at };
    } else this.#ntp = { wall, at };
    if (!first) return;
    const off = Math.round((at.wall - wall) / 1000);
    log.info('clock_confirmed', { source, true_time: new Date(wall).toISOString(), hub_clock_ahead: off });
    if (Math.abs(at.wall - wall) > WRONG) log.warn('clock_wrong', { hub_clock_ahead: off });
    for (const tell of this.#whenConfirmed) tell();
  }
}

/**
 * Asks the portals for the time where somebody needs it and nobody has told it: a hub on which no appliance is paired asks
 * them nothing else.
 */
export class PortalTimeProbe {
  readonly #environment: Pick<Environment, 'clock' | 'timers'>;
  readonly #portalClock: PortalClock;
  readonly #portals: () => readonly Pick<Portal, 'askTime'>[];
  #underWay: Promise<unknown> | null = null;
  /** When it may be asked again, on the boot clock in ms. */
  #next = Number.NEGATIVE_INFINITY;

  constructor(
    environment: Pick<Environment, 'clock' | 'timers'>,
    portalClock: PortalClock,
    portals: () => readonly Pick<Portal, 'askTime'>[],
  ) {
    this.#environment = environment;
    this.#portalClock = portalClock;
    this.#portals = portals;
  }

  /** Resolves when the time is known, or when it is no use to wait for it any longer. */
  async confirm(): Promise<void> {
    const { clock, timers } = this.#environment;
    if (this.#portalClock.confirmed !== null) return;
    const now = clock.now().uptime;
    if (this.#underWay === null && now >= this.#next) {
      this.#next = now + MIN_PROBE_INTERVAL;
      this.#underWay = this.#ask().finally(() => {
        this.#underWay = null;
      });
    }
    if (this.#underWay !== null) await withTimeout(this.#underWay, MAX_WAIT, timers);
  }

  /** Resolves with the first portal's answer that tells the time, or when all have told nothing. */
  async #ask(): Promise<void> {
    const told = this.#portals().map(async (portal) => {
      const time = await portal.askTime();
      if (time === null) throw new Error('no answer tells the time');
      this.#portalClock.learn(time);
    });
    await Promise.any(told).catch(() => undefined);
  }
}

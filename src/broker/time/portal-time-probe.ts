import type { Portal } from '../../core/portal.ts';
import { withTimeout } from '../../system/clock.ts';
import type { Environment } from '../environment.ts';
import type { PortalClock } from './portal-clock.ts';

/** Portals are asked at most so often, in ms. */
const EVERY = 30_000;
/** Who needs the time waits no longer than this for it, in ms. */
const LONGEST_WAIT = 5000;

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
      this.#next = now + EVERY;
      this.#underWay = this.#ask().finally(() => {
        this.#underWay = null;
      });
    }
    if (this.#underWay !== null) await withTimeout(this.#underWay, LONGEST_WAIT, timers);
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

import { Grants } from '../../src/broker/grants/grants.ts';
import { PortalClock } from '../../src/broker/time/portal-clock.ts';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import type { Instant } from '../../src/core/clock.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import type { Portal } from '../../src/core/portal.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Store } from '../../src/core/store.ts';

/** From one grant's refresh to the next one's, in ms: however many there are, each time one is due. */
const APART = 500;

/** What one refresh takes, by all that decides on it: neither the portal nor the disk is there. */
interface Step {
  /** How often a timer was armed, and the clock read. */
  readonly armed: number;
  readonly readings: number;
  /** How many timers there were at once, at most. */
  readonly timers: number;
}

/** Has a broker look after so many grants for so many refreshes, on a clock that is moved by hand. */
export async function refreshSteps(grants: number, steps: number): Promise<Step> {
  const time = new HandMovedTime();
  const lifetime = (grants * APART) / 0.8;
  const [accessToken, refreshToken] = [new Secret('access'), new Secret('refresh')];
  const tokens = { accessToken, refreshToken, scope: null, lifetime };
  const giver = { name: 'home', origin: 'https://portal.test', clientId: 'hub' };
  const stored = Array.from({ length: grants }, (_, index) => {
    const fate = { portalTime: null, doubt: null, refused: null, distrusted: null, asked: null, givenBy: giver };
    const obtained = { ...time.now(), uptime: -index * APART };
    const grant: Grant = { appliance: `appliance-${index}`, generation: 1, obtained, ...tokens, ...fate };
    return { grant, attempt: null };
  });
  let refreshed = 0;
  const store: Pick<Store, 'grants' | 'beginAttempt' | 'replaceGrant'> = {
    grants: async () => stored,
    beginAttempt: async () => true,
    async replaceGrant() {
      refreshed += 1;
      return true;
    },
  };
  const portal: Pick<Portal, 'refresh'> = {
    refresh: async () => ({ kind: 'granted', tokens, portalTime: time.now().wall }),
  };
  const silent = () => undefined;
  const environment = {
    clock: time,
    timers: time,
    random: { token: () => '', uuid: () => '', below: () => 0, fraction: () => 0.5 },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    emit: silent,
  };
  const identity = { ...giver, others: [] };
  const holder = { name: 'appliance', portal: portal as Portal, identity, replay: 'late' as const };
  const scheduler = new Scheduler(environment);
  const portalClock = new PortalClock(environment);
  const broker = new Grants(
    environment,
    store as Store,
    scheduler,
    portalClock,
    () => holder,
    () => 0.5,
  );
  await broker.load();

  const until = async (count: number) => {
    while (refreshed < count) {
      time.fire();
      await new Promise(setImmediate);
    }
  };
  await until(grants);
  const before = { refreshed, armed: time.armed, readings: time.readings };
  await until(refreshed + steps);
  const each = (sum: number) => sum / (refreshed - before.refreshed);
  return {
    armed: each(time.armed - before.armed),
    readings: each(time.readings - before.readings),
    timers: time.most,
  };
}

/** A clock that stands still until the next timer fires. */
class HandMovedTime {
  armed = 0;
  readings = 0;
  most = 0;
  #uptime = 0;
  readonly #timers = new Set<{ readonly at: number; readonly run: () => void }>();

  now(): Instant {
    this.readings += 1;
    return { boot: 'one', uptime: this.#uptime, wall: this.#uptime };
  }

  after(delay: number, run: () => void): () => void {
    const timer = { at: this.#uptime + delay, run };
    this.#timers.add(timer);
    this.armed += 1;
    this.most = Math.max(this.most, this.#timers.size);
    return () => this.#timers.delete(timer);
  }

  sleep(): Promise<void> {
    return Promise.reject(new Error('nobody sleeps here'));
  }

  /** Goes on to the next timer. */
  fire(): void {
    const [next] = [...this.#timers].sort((a, b) => a.at - b.at);
    if (next === undefined) throw new Error('nothing is planned');
    this.#timers.delete(next);
    this.#uptime = Math.max(this.#uptime, next.at);
    next.run();
  }
}

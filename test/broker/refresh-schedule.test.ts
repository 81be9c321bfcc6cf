import { expect, test } from 'vitest';
import { RefreshSchedule, type ScheduledGrant } from '../../src/broker/grants/refresh-schedule.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from '../core/samples.ts';
import { logTo } from '../support/log-to.ts';

const grant = sampleGrant({ obtained: instantAt(0), lifetime: 3 * HOUR });
const held: ScheduledGrant = {
  ...{ grant, health: { kind: 'good' }, lastForcedRefresh: null, throttledUntil: Number.NEGATIVE_INFINITY },
  leasedUntil: null,
};

/** The schedule of a hub that has run from 0 to `uptime`, for a portal where a refresh ends the access token. */
function scheduleAt(uptime: number, rank: number): RefreshSchedule {
  let now = 0;
  const environment = {
    clock: { now: () => instantAt(now) },
    random: systemRandom,
    log: logTo(() => undefined),
  };
  const portal = {
    retryLostAnswer: 'late',
    ...{ loginLifetime: null, idleLifetime: null, refreshEndsAccessToken: true },
  } as const;
  const schedule = new RefreshSchedule(
    environment,
    new ReferenceClock(environment),
    () => portal,
    () => 0.5,
    () => rank,
  );
  now = uptime;
  return schedule;
}

test.each([1 * MINUTE, 2 * HOUR, 3 * HOUR - 61 * SECOND, 3 * HOUR - 59 * SECOND, 3 * HOUR - 1 * SECOND])(
  'every hub of a site says that a token ends when the first one refreshes it, if that ends it: %i ms after it was issued',
  (age) => {
    const usable = [0, 1, 2].map((rank) => scheduleAt(age, rank).usable(held));
    expect(new Set(usable)).toEqual(new Set([Math.max(0, 3 * HOUR - MINUTE - age)]));
    // While one of them refreshes it, too.
    expect(scheduleAt(age, 1).usable({ ...held, leasedUntil: age + 3 * MINUTE })).toBe(usable[0]);
    const [first = 0, second = 0] = [0, 1].map((rank) => scheduleAt(age, rank).dueAt(held) ?? 0);
    expect(second).toBeGreaterThan(first);
  },
);

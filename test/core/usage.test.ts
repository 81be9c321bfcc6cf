import { describe, expect, it } from 'vitest';
import { countTokens, mergeUsage, type UsageFacts, unusualUsage } from '../../src/core/appliances/usage.ts';
import { utcDay } from '../../src/core/clock.ts';
import { DAY, HOUR, MINUTE } from './samples.ts';

const MIDNIGHT = Date.UTC(2031, 4, 5);
const TODAY = utcDay(MIDNIGHT);

function day(before: number, count: number) {
  return { day: TODAY - before, count };
}

describe('the counts of tokens', () => {
  it('tokens of today and of the last fourteen days are counted, and no others', () => {
    const days = [day(14, 1), day(13, 2), day(1, 4), day(0, 8), day(-1, 16)];
    expect(countTokens(days, TODAY)).toEqual({ today: 8, last14Days: 14 });
    expect(countTokens(days, TODAY + 14)).toEqual({ today: 0, last14Days: 16 });
    expect(countTokens([], TODAY)).toEqual({ today: 0, last14Days: 0 });
  });

  it('later tokens are added to the earlier ones of their day, and days that no longer count are dropped', () => {
    const earlier = { last: MIDNIGHT - HOUR, days: [day(14, 1), day(13, 2), day(1, 4)] };
    const later = { last: MIDNIGHT + HOUR, days: [day(1, 8), day(0, 16)] };
    expect(mergeUsage(earlier, later, TODAY)).toEqual({
      last: MIDNIGHT + HOUR,
      days: [day(13, 2), day(1, 12), day(0, 16)],
    });
    expect(mergeUsage(null, later, TODAY)).toEqual(later);
    expect(mergeUsage({ ...earlier, days: [day(0, 1)] }, later, TODAY).days).toEqual([day(1, 8), day(0, 17)]);
  });

  it('days that a wrong clock has counted in the future are dropped', () => {
    const ahead = { last: MIDNIGHT + 3650 * DAY, days: [day(1, 3), day(-3650, 5)] };
    const later = { last: MIDNIGHT, days: [day(0, 1)] };
    expect(mergeUsage(ahead, later, TODAY)).toEqual({ last: MIDNIGHT, days: [day(1, 3), day(0, 1)] });
  });
});

describe('unusual usage', () => {
  /** An appliance that got a token of an hour an hour ago, at noon, from a hub that has run for long. */
  const now = MIDNIGHT + 12 * HOUR;
  const facts: UsageFacts = {
    now,
    last: MIDNIGHT + 11 * HOUR,
    today: 12,
    lifetime: HOUR,
    available: 30 * DAY,
  };
  const weekAgo = now - 7 * DAY;

  it.for<[what: string, changes: Partial<UsageFacts>, unusual: ReturnType<typeof unusualUsage>]>([
    ['asks once for each token', {}, null],
    ['never got one', { last: null, today: 0 }, 'never_served'],
    ['never got one, and the time is unknown', { last: null, today: 0, now: null }, 'never_served'],
    ['asked more than a week ago by a clock that is not confirmed', { last: weekAgo - 1, now: null }, null],
    ['asked a week ago', { last: weekAgo, today: 0 }, null],
    ['asked more than a week ago', { last: weekAgo - 1, today: 0 }, 'silent'],
    ['asked then, and could not ask since', { last: weekAgo - 1, today: 0, available: HOUR - 1 }, null],
    ['asked then, and could ask just one lifetime ago', { last: weekAgo - 1, today: 0, available: HOUR }, 'silent'],
    ['asked then, and its token has not expired', { last: weekAgo - 1, today: 0, lifetime: 8 * DAY }, null],
    ['did not ask when its token of eight days expired', { last: weekAgo - 2 * DAY, lifetime: 8 * DAY }, 'silent'],
    [
      'did not ask on the first day of such a hub',
      { last: weekAgo - 2 * DAY, lifetime: 8 * DAY, available: DAY - 1 },
      null,
    ],
    [
      'did not ask on the second day of such a hub',
      { last: weekAgo - 2 * DAY, lifetime: 8 * DAY, available: DAY },
      'silent',
    ],
    ['asked a hundred times for each token', { today: 1200 }, null],
    ['asked more often than that', { today: 1201 }, 'asks_often'],
    ['asked a hundred times right after midnight', { now: MIDNIGHT + MINUTE, today: 100 }, null],
    ['asked more often right after midnight', { now: MIDNIGHT + MINUTE, today: 101 }, 'asks_often'],
    ['asked a hundred times for a token of a month', { today: 100, lifetime: 30 * DAY }, null],
    ['asked more often for a token of a month', { today: 101, lifetime: 30 * DAY }, 'asks_often'],
  ])('an appliance that %s is pointed out or not: %s', ([, changes, unusual]) => {
    expect(unusualUsage({ ...facts, ...changes })).toBe(unusual);
  });
});

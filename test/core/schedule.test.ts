import { describe, expect, test } from 'vitest';
import { canLastLonger, forcedRefreshAt, nextRefreshAt, onDemandDue } from '../../src/core/grants/schedule.ts';
import { at, DAY, grantOf, HOUR, MINUTE, SECOND } from './samples.ts';

const running = { confirmed: null, since: 0, lastForcedRefresh: null };

describe('a token of a run that goes on', () => {
  test('is refreshed between 75 and 85 % of its life', () => {
    const spreads = [0, 0.5, 1].map((jitterOffset) =>
      nextRefreshAt(grantOf(), { ...running, now: at(MINUTE), jitterOffset }),
    );
    expect(spreads).toEqual([45 * MINUTE, 48 * MINUTE, 51 * MINUTE]);
  });

  test('that is dead before it can be used is refreshed twice a minute, whatever its lifetime', () => {
    for (const lifetime of [0, 1, SECOND, 2999]) {
      expect(nextRefreshAt(grantOf({ lifetime }), { ...running, now: at(1), jitterOffset: 0.5 })).toBe(30 * SECOND);
    }
  });

  test('is not refreshed for an appliance within two seconds of the last time', () => {
    expect(onDemandDue(grantOf(), at(SECOND))).toBe(2 * SECOND);
  });
});

describe('after a start of the hub', () => {
  const since = 20 * SECOND;
  const now = at(since, 'boot-2');

  test('tokens of unknown age come due at any time of half a lifetime, as their offset says', () => {
    const due = (jitterOffset: number) =>
      nextRefreshAt(grantOf(), { now, confirmed: null, since, jitterOffset, lastForcedRefresh: null });
    expect([0, 0.5, 1].map(due)).toEqual([since, since + 15 * MINUTE, since + 30 * MINUTE]);
    expect(onDemandDue(grantOf(), now)).toBe(now.uptime);
  });

  test('a token whose age has become known keeps its usual time', () => {
    const confirmed = { wall: (grantOf().portalTime ?? 0) + 10 * MINUTE, at: now };
    const due = nextRefreshAt(grantOf(), { now, confirmed, since, jitterOffset: 0, lastForcedRefresh: null });
    expect(due).toBe(since + 35 * MINUTE - SECOND);
  });

  test('what came due meanwhile is spread as well, in another boot as in the same one', () => {
    const confirmed = { wall: (grantOf().portalTime ?? 0) + DAY, at: now };
    expect(nextRefreshAt(grantOf(), { now, confirmed, since, jitterOffset: 0.5, lastForcedRefresh: null })).toBe(
      since + 15 * MINUTE,
    );
    const late = { now: at(9 * HOUR), confirmed: null, since: 9 * HOUR, jitterOffset: 0.5, lastForcedRefresh: null };
    expect(nextRefreshAt(grantOf(), late)).toBe(9 * HOUR + 15 * MINUTE);
  });

  test('no token with a tenth of its life left runs out because the hub was started again', () => {
    for (const [age, last] of [
      [51.01, HOUR - MINUTE],
      [53.9, HOUR - MINUTE],
      [54.1, (54.1 + 30) * MINUTE],
    ] as const) {
      const due = (jitterOffset: number) => {
        const timetable = {
          now: at(HOUR),
          confirmed: null,
          since: age * MINUTE,
          jitterOffset,
          lastForcedRefresh: null,
        };
        return nextRefreshAt(grantOf(), timetable);
      };
      expect(due(0)).toBeCloseTo(age * MINUTE);
      expect(due(1)).toBeCloseTo(last);
    }
  });

  test('a thousand hubs never make more than twice the usual requests, and all are done within a lifetime', () => {
    const dues = Array.from({ length: 1000 }, (_, hub) =>
      nextRefreshAt(grantOf(), { now, confirmed: null, since, jitterOffset: hub / 1000, lastForcedRefresh: null }),
    );
    const within = (from: number) => dues.filter((due) => due >= from && due < from + 5 * MINUTE).length;
    const usual = (1000 * 5 * MINUTE) / (0.8 * HOUR);
    expect(Math.max(...dues)).toBeLessThanOrEqual(since + HOUR);
    for (let from = since; from < since + HOUR; from += MINUTE) expect(within(from)).toBeLessThanOrEqual(2 * usual);
  });
});

describe('a token that the cloud refused', () => {
  test('is replaced at once, and then no sooner than a minute after the last one that was', () => {
    expect(forcedRefreshAt({ now: at(HOUR), lastForcedRefresh: null })).toBe(HOUR);
    expect(forcedRefreshAt({ now: at(HOUR), lastForcedRefresh: HOUR - SECOND })).toBe(HOUR + 59 * SECOND);
  });
});

describe('a token that should last longer', () => {
  const cases: [string, number, number, boolean][] = [
    ['as long as it does', 30 * MINUTE, 30 * MINUTE, false],
    ['a little longer', 30 * MINUTE, 30 * MINUTE + 1, true],
    ['a whole life', 30 * MINUTE, HOUR, true],
    ['longer than any', 30 * MINUTE, HOUR + 1, false],
    ['a whole life, and it is new', HOUR - MINUTE, HOUR, false],
    ['a whole life, and it was new a moment ago', HOUR - MINUTE - 1, HOUR, true],
  ];
  test.each(cases)('%s', (_, left, minTtl, helps) => {
    expect(canLastLonger(grantOf(), left, minTtl)).toBe(helps);
  });

  test('is new for a tenth of its life, where that is less than a minute', () => {
    const short = grantOf({ lifetime: 60 * SECOND });
    expect(canLastLonger(short, 54 * SECOND, MINUTE)).toBe(false);
    expect(canLastLonger(short, 54 * SECOND - 1, MINUTE)).toBe(true);
  });
});

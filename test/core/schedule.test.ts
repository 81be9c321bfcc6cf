import { describe, expect, test } from 'vitest';
import {
  forcedRefreshAt,
  nextRefreshAt,
  onDemandRefreshAt,
  wouldRefreshMeetMinTtl,
} from '../../src/core/grants/schedule.ts';
import { DAY, HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const running = { confirmed: null, startedAt: 0, lastForcedRefresh: null };

describe('a token of a run that goes on', () => {
  test('is refreshed between 75 and 85 % of its life', () => {
    const spreads = [0, 0.5, 1].map((jitterOffset) =>
      nextRefreshAt(sampleGrant(), { ...running, now: instantAt(MINUTE), jitterOffset }),
    );
    expect(spreads).toEqual([45 * MINUTE, 48 * MINUTE, 51 * MINUTE]);
  });

  test('that is dead before it can be used is refreshed twice a minute, whatever its lifetime', () => {
    for (const lifetime of [0, 1, SECOND, 2999]) {
      expect(nextRefreshAt(sampleGrant({ lifetime }), { ...running, now: instantAt(1), jitterOffset: 0.5 })).toBe(
        30 * SECOND,
      );
    }
  });

  test('is not refreshed for an appliance within two seconds of the last time', () => {
    expect(onDemandRefreshAt(sampleGrant(), instantAt(SECOND))).toBe(2 * SECOND);
  });
});

describe('after a start of the hub', () => {
  const since = 20 * SECOND;
  const now = instantAt(since, 'boot-2');

  test('tokens of unknown age come due at any time of half a lifetime, as their offset says', () => {
    const due = (jitterOffset: number) =>
      nextRefreshAt(sampleGrant(), { now, confirmed: null, startedAt: since, jitterOffset, lastForcedRefresh: null });
    expect([0, 0.5, 1].map(due)).toEqual([since, since + 15 * MINUTE, since + 30 * MINUTE]);
    expect(onDemandRefreshAt(sampleGrant(), now)).toBe(now.uptime);
  });

  test('a token whose age has become known keeps its usual time', () => {
    const confirmed = { wall: (sampleGrant().portalTime ?? 0) + 10 * MINUTE, at: now };
    const due = nextRefreshAt(sampleGrant(), {
      now,
      confirmed,
      startedAt: since,
      jitterOffset: 0,
      lastForcedRefresh: null,
    });
    expect(due).toBe(since + 35 * MINUTE - SECOND);
  });

  test('what came due meanwhile is spread as well, in another boot as in the same one', () => {
    const confirmed = { wall: (sampleGrant().portalTime ?? 0) + DAY, at: now };
    expect(
      nextRefreshAt(sampleGrant(), { now, confirmed, startedAt: since, jitterOffset: 0.5, lastForcedRefresh: null }),
    ).toBe(since + 15 * MINUTE);
    const late = {
      now: instantAt(9 * HOUR),
      confirmed: null,
      startedAt: 9 * HOUR,
      jitterOffset: 0.5,
      lastForcedRefresh: null,
    };
    expect(nextRefreshAt(sampleGrant(), late)).toBe(9 * HOUR + 15 * MINUTE);
  });

  test('no token with a tenth of its life left runs out because the hub was started again', () => {
    for (const [age, last] of [
      [51.01, HOUR - MINUTE],
      [53.9, HOUR - MINUTE],
      [54.1, (54.1 + 30) * MINUTE],
    ] as const) {
      const due = (jitterOffset: number) => {
        const timetable = {
          now: instantAt(HOUR),
          confirmed: null,
          startedAt: age * MINUTE,
          jitterOffset,
          lastForcedRefresh: null,
        };
        return nextRefreshAt(sampleGrant(), timetable);
      };
      expect(due(0)).toBeCloseTo(age * MINUTE);
      expect(due(1)).toBeCloseTo(last);
    }
  });

  test('a thousand hubs never make more than twice the usual requests, and all are done within a lifetime', () => {
    const dues = Array.from({ length: 1000 }, (_, hub) =>
      nextRefreshAt(sampleGrant(), {
        now,
        confirmed: null,
        startedAt: since,
        jitterOffset: hub / 1000,
        lastForcedRefresh: null,
      }),
    );
    const within = (from: number) => dues.filter((due) => due >= from && due < from + 5 * MINUTE).length;
    const usual = (1000 * 5 * MINUTE) / (0.8 * HOUR);
    expect(Math.max(...dues)).toBeLessThanOrEqual(since + HOUR);
    for (let from = since; from < since + HOUR; from += MINUTE) expect(within(from)).toBeLessThanOrEqual(2 * usual);
  });
});

describe('a token that the cloud refused', () => {
  test('is replaced at once, and then no sooner than a minute after the last one that was', () => {
    expect(forcedRefreshAt({ now: instantAt(HOUR), lastForcedRefresh: null })).toBe(HOUR);
    expect(forcedRefreshAt({ now: instantAt(HOUR), lastForcedRefresh: HOUR - SECOND })).toBe(HOUR + 59 * SECOND);
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
    expect(wouldRefreshMeetMinTtl(sampleGrant(), left, minTtl)).toBe(helps);
  });

  test('is new for a tenth of its life, where that is less than a minute', () => {
    const short = sampleGrant({ lifetime: 60 * SECOND });
    expect(wouldRefreshMeetMinTtl(short, 54 * SECOND, MINUTE)).toBe(false);
    expect(wouldRefreshMeetMinTtl(short, 54 * SECOND - 1, MINUTE)).toBe(true);
  });
});

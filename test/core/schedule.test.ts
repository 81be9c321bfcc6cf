import { describe, expect, test } from 'vitest';
import {
  needsRefreshBeforeIssue,
  nextRefreshAt,
  onDemandRefreshAt,
  throttledUntil,
  wouldRefreshMeetMinTtl,
} from '../../src/core/grants/schedule.ts';
import { DAY, HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const running = { confirmed: null, startedAt: 0, lastForcedRefresh: null };

describe('refresh time while the hub runs', () => {
  test('a token with a lifetime under 3 s is refreshed every 30 s', () => {
    for (const lifetime of [0, 1, SECOND, 2999]) {
      expect(nextRefreshAt(sampleGrant({ lifetime }), { ...running, now: instantAt(1), jitterOffset: 0.5 })).toBe(
        30 * SECOND,
      );
    }
    const useful = sampleGrant({ lifetime: 3 * SECOND });
    expect(nextRefreshAt(useful, { ...running, now: instantAt(1), jitterOffset: 0.5 })).toBe(2.4 * SECOND);
  });

  test('a token is not refreshed for an appliance within two seconds of the previous refresh', () => {
    expect(onDemandRefreshAt(sampleGrant(), instantAt(SECOND))).toBe(2 * SECOND);
  });
});

describe("refresh time after the hub's start", () => {
  const since = 20 * SECOND;
  const now = instantAt(since, 'boot-2');
  const restarted = { ...running, now, startedAt: since };

  test('tokens of unknown age come due within half a lifetime after the start, by their jitter offset', () => {
    const due = (jitterOffset: number) => nextRefreshAt(sampleGrant(), { ...restarted, jitterOffset });
    expect([0, 0.5, 1].map(due)).toEqual([since, since + 15 * MINUTE, since + 30 * MINUTE]);
    expect(onDemandRefreshAt(sampleGrant(), now)).toBe(now.uptime);
  });

  test('a token whose age is known again after a reboot keeps its usual refresh time', () => {
    const confirmed = { wall: (sampleGrant().portalTime ?? 0) + 10 * MINUTE, at: now };
    const due = nextRefreshAt(sampleGrant(), { ...restarted, confirmed, jitterOffset: 0 });
    expect(due).toBe(since + 35 * MINUTE - SECOND);
  });

  test('refreshes that came due while the hub was off are spread over time, within a boot and after a reboot', () => {
    const confirmed = { wall: (sampleGrant().portalTime ?? 0) + DAY, at: now };
    const known = { ...restarted, confirmed, jitterOffset: 0.5 };
    expect(nextRefreshAt(sampleGrant(), known)).toBe(since + 15 * MINUTE);
    const late = { ...running, now: instantAt(9 * HOUR), startedAt: 9 * HOUR, jitterOffset: 0.5 };
    expect(nextRefreshAt(sampleGrant(), late)).toBe(9 * HOUR + 15 * MINUTE);
  });

  test('no token with a tenth of its lifetime left expires because the hub was restarted', () => {
    for (const [age, last] of [
      // It comes due by its jitter at exactly this time.
      [51, 51 * MINUTE],
      [51.01, HOUR - MINUTE],
      [53.9, HOUR - MINUTE],
      [54, (54 + 30) * MINUTE],
      [54.1, (54.1 + 30) * MINUTE],
    ] as const) {
      const due = (jitterOffset: number) =>
        nextRefreshAt(sampleGrant(), { ...running, now: instantAt(HOUR), startedAt: age * MINUTE, jitterOffset });
      expect(due(0)).toBeCloseTo(age * MINUTE);
      expect(due(1)).toBeCloseTo(last);
    }
  });

  test('a fleet of a thousand restarted hubs makes at most twice the usual requests, all within a lifetime', () => {
    const dueAt = (jitterOffset: number) => nextRefreshAt(sampleGrant(), { ...restarted, jitterOffset });
    const dueTimes = Array.from({ length: 1000 }, (_, hub) => dueAt(hub / 1000) ?? expect.fail());
    const within = (from: number) => dueTimes.filter((due) => due >= from && due < from + 5 * MINUTE).length;
    const usual = (1000 * 5 * MINUTE) / (0.8 * HOUR);
    expect(Math.max(...dueTimes)).toBeLessThanOrEqual(since + HOUR);
    for (let from = since; from < since + HOUR; from += MINUTE) expect(within(from)).toBeLessThanOrEqual(2 * usual);
  });
});

describe('refresh for min_ttl', () => {
  const cases: [string, number, number, boolean][] = [
    ['exactly its remaining lifetime', 30 * MINUTE, 30 * MINUTE, false],
    ['1 ms more than its remaining lifetime', 30 * MINUTE, 30 * MINUTE + 1, true],
    ['a whole lifetime', 30 * MINUTE, HOUR, true],
    ['longer than a lifetime', 30 * MINUTE, HOUR + 1, false],
    ['a whole lifetime, and the token is new', HOUR - MINUTE, HOUR, false],
    ['a whole lifetime, and the token has just stopped counting as new', HOUR - MINUTE - 1, HOUR, true],
  ];
  test.each(cases)('a refresh for min_ttl is worthwhile or not: %s', (_, remaining, minTtl, helps) => {
    expect(wouldRefreshMeetMinTtl(sampleGrant(), remaining, minTtl)).toBe(helps);
  });

  test('a token with a lifetime under ten minutes counts as new for a tenth of it', () => {
    const short = sampleGrant({ lifetime: 60 * SECOND });
    expect(wouldRefreshMeetMinTtl(short, 54 * SECOND, MINUTE)).toBe(false);
    expect(wouldRefreshMeetMinTtl(short, 54 * SECOND - 1, MINUTE)).toBe(true);
  });
});

test.each<[string, number, number, number, boolean]>([
  ['a minute left', HOUR, MINUTE, 0, false],
  ['less than a minute left', HOUR, MINUTE - 1, 0, true],
  ['a second left of five', 5 * SECOND, SECOND, 0, false],
  ['less than a second left of five', 5 * SECOND, SECOND - 1, 0, true],
  ['less left than its min_ttl', HOUR, 30 * MINUTE, 40 * MINUTE, true],
  ['as much left as its min_ttl', HOUR, 40 * MINUTE, 40 * MINUTE, false],
])('a token request waits for a refresh if the token has too little left: %s', (_, lifetime, left, minTtl, waits) => {
  expect(needsRefreshBeforeIssue(sampleGrant({ lifetime }), left, minTtl)).toBe(waits);
});

describe('throttle of background refreshes', () => {
  /** How many refreshes may follow each other at a time. */
  function burst(before: number, now: number): { count: number; until: number } {
    let [count, until] = [0, before];
    for (; until <= now && count < 1000; count++) until = throttledUntil(until, now);
    return { count, until };
  }

  test('61 refreshes may follow each other at once, then one each 30 s, and all of them again after half an hour', () => {
    const first = burst(Number.NEGATIVE_INFINITY, HOUR);
    expect(first).toEqual({ count: 61, until: HOUR + 30 * SECOND });
    const second = burst(first.until, HOUR + 30 * SECOND);
    expect(second).toEqual({ count: 1, until: HOUR + MINUTE });
    expect(burst(second.until, HOUR + MINUTE + 10 * 30 * SECOND).count).toBe(11);
    expect(burst(second.until, 9 * HOUR).count).toBe(61);
  });

  test('refreshes that appliances wait for do not put off the next one in the background any further', () => {
    const { until } = burst(Number.NEGATIVE_INFINITY, HOUR);
    expect(throttledUntil(until, HOUR + SECOND)).toBe(HOUR + 31 * SECOND);
  });
});

describe('end of a grant without a refresh token', () => {
  const grant = sampleGrant({ refreshToken: null });
  const boot = instantAt(20 * SECOND, 'boot-2');
  const timing = { startedAt: boot.uptime, jitterOffset: 0.5, lastForcedRefresh: null };

  test('it ends with its access token, or at once if an appliance reports that as rejected', () => {
    for (const at of [1, 50 * MINUTE, HOUR, 3 * HOUR]) {
      const now = instantAt(at);
      expect(nextRefreshAt(grant, { ...running, now, jitterOffset: 0.5 })).toBe(Math.max(HOUR, at));
      const rejected = { ...grant, accessTokenRejectedAt: now };
      expect(nextRefreshAt(rejected, { ...running, now, jitterOffset: 0.5 })).toBe(at);
    }
  });

  test('its end is not known after a boot until the clock is confirmed', () => {
    expect(nextRefreshAt(grant, { ...timing, now: boot, confirmed: null })).toBeNull();
    const confirmed = { at: boot, wall: Date.UTC(2031, 4, 5, 6) + 10 * MINUTE };
    const due = nextRefreshAt(grant, { ...timing, now: boot, confirmed });
    expect(due).toBe(boot.uptime + 50 * MINUTE - SECOND);
  });

  test('if its token response had no Date, it ends a whole lifetime after a start with a confirmed clock', () => {
    const undated = { ...grant, portalTime: null };
    const confirmed = { at: boot, wall: Date.UTC(2031, 4, 5, 6) + 10 * MINUTE };
    expect(nextRefreshAt(undated, { ...timing, now: boot, confirmed: null })).toBeNull();
    expect(nextRefreshAt(undated, { ...timing, now: boot, confirmed })).toBe(boot.uptime + HOUR);
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backgroundDelay, backoffDelay, delayAfterDeferral, retryAfterDelay } from '../../src/core/grants/backoff.ts';
import { DAY, HOUR, MINUTE, SECOND } from './samples.ts';

const fraction = fc.double({ min: 0, max: 1, noNaN: true });

test('a backoff delay is between one second and a bound that doubles with every failure up to the cap', () => {
  const backoff = fc.record({ base: fc.integer({ min: 1000, max: HOUR }), cap: fc.integer({ min: 1000, max: HOUR }) });
  fc.assert(
    fc.property(backoff, fc.integer({ min: 1, max: 1_000_000 }), fraction, ({ base, cap }, failures, jitter) => {
      const delay = backoffDelay({ base, cap }, failures, jitter);
      expect(delay).toBeGreaterThanOrEqual(SECOND);
      expect(delay).toBeLessThanOrEqual(Math.max(SECOND, Math.min(cap, base * 2 ** Math.min(failures - 1, 30))));
    }),
  );
});

test('the jitter of a backoff delay ranges from one second to the bound', () => {
  const backoff = { base: 2000, cap: 300_000 };
  expect([1, 2, 3, 8, 9, 100].map((failures) => backoffDelay(backoff, failures, 1))).toEqual([
    2000, 4000, 8000, 256_000, 300_000, 300_000,
  ]);
  expect(backoffDelay(backoff, 9, 0)).toBe(SECOND);
  expect(backoffDelay(backoff, 9, 0.5)).toBe(150_000);
});

test('the delay after Retry-After is that time plus up to a tenth, at least a second and at most an hour or the limit', () => {
  expect(retryAfterDelay(120 * SECOND, 0, DAY)).toBe(120 * SECOND);
  expect(retryAfterDelay(120 * SECOND, 1, 0)).toBeCloseTo(132 * SECOND);
  expect(retryAfterDelay(0, 0, DAY)).toBe(SECOND);
  expect(retryAfterDelay(1e15, 0, 0)).toBe(HOUR);
  expect(retryAfterDelay(1e15, 1, MINUTE)).toBeCloseTo(1.1 * HOUR);
  expect(retryAfterDelay(1e15, 0, 7 * HOUR)).toBe(7 * HOUR);
  expect(retryAfterDelay(1e15, 1, 9 * DAY)).toBeCloseTo(DAY + 0.1 * HOUR);
});

test("the first retry comes within the token's lifetime and later ones once a lifetime, each half jitter", () => {
  const delays = (lifetime: number, failures: number) =>
    [0, 1].map((jitter) => backgroundDelay(lifetime, failures, jitter));
  expect(delays(HOUR, 1)).toEqual([3 * MINUTE, 6 * MINUTE]);
  for (const failures of [2, 3, 1_000_000]) expect(delays(HOUR, failures)).toEqual([24 * MINUTE, 48 * MINUTE]);
  expect(delays(10 * SECOND, 1)).toEqual([SECOND, 2 * SECOND]);
  expect(delays(SECOND, 2)).toEqual([2.5 * SECOND, 5 * SECOND]);
  expect([1, 2].map((failures) => backgroundDelay(365 * DAY, failures, 1))).toEqual([10 * MINUTE, DAY]);
});

test('a refresh that the portal defers is retried while the token lives, and later the longer that lasts', () => {
  const delays = (duration: number) => [0, 1].map((jitter) => delayAfterDeferral(HOUR, duration, jitter));
  expect(delays(0)).toEqual([3 * MINUTE, 6 * MINUTE]);
  expect(delays(10 * MINUTE)).toEqual([10 * MINUTE, 20 * MINUTE]);
  expect(delays(DAY)).toEqual([24 * MINUTE, 48 * MINUTE]);
});

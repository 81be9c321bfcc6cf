import { expect, it } from 'vitest';
import type { ConnectionEvent } from '../../src/core/reports/history.ts';
import { Counters, DurationHistogram, REFRESH_BUCKETS_SECONDS } from '../../src/metrics/counters.ts';

const at = { boot: 'boot-1', uptime: 1000, wall: 0 };

function refreshed(connection: string, took: number): ConnectionEvent {
  return { kind: 'refreshed', connection, at, took };
}

/** How many of these seconds are in every bucket, and their sum. */
function histogram(seconds: readonly number[]): { counts: number[]; sum: number } {
  const bounds = [...REFRESH_BUCKETS_SECONDS, Number.POSITIVE_INFINITY];
  const bucketOf = (value: number) => bounds.findIndex((bound) => value <= bound);
  return {
    counts: bounds.map((_, index) => seconds.filter((value) => bucketOf(value) === index).length),
    sum: seconds.reduce((sum, value) => sum + value, 0),
  };
}

it('a duration histogram counts every value in the right bucket, and has their sum', () => {
  const durations = new DurationHistogram(REFRESH_BUCKETS_SECONDS);
  const values = [0, 1, 50, 50, 51, 100, 100, 100, 130, 999, 1000, 1001, 60_000, 60_001, 300_000];
  for (const ms of values) durations.observe(ms);
  const exact = histogram(values.map((ms) => ms / 1000));
  const { counts, sum } = durations.read();
  expect(counts).toEqual(exact.counts);
  expect(sum).toBeCloseTo(exact.sum, 9);
});

it('the counters count what ended without a request, but not its duration', () => {
  const counters = new Counters();
  counters.record({ kind: 'refresh_failed', connection: 'a', at, problem: 'store_unwritable', took: null });
  counters.record({ kind: 'refresh_failed', connection: 'a', at, problem: 'portal_unreachable', took: 30_000 });
  counters.record({ kind: 'pairing_failed', connection: 'a', at, reason: 'expired' });
  counters.record({ kind: 'token_refused', connection: 'a', at });
  counters.record({ kind: 'unpaired', connection: 'a', at });
  const { refreshes, pairings, rejectedTokens: refusedTokens } = counters.forConnection('a');
  expect(refreshes).toEqual({ store_unwritable: 1, portal_unreachable: 1 });
  expect(pairings).toEqual({ expired: 1 });
  expect(refusedTokens).toBe(1);
  expect(counters.refreshDurations.read()).toMatchObject(histogram([30]));
});

it('the counters hold only what exists after retainOnly', () => {
  const counters = new Counters();
  for (const appliance of ['wallbox', 'pump']) counters.tokenRequested(appliance, 'token');
  for (const connection of ['heating', 'car']) counters.record(refreshed(connection, 1));
  counters.retainOnly(new Set(['heating']), new Set(['wallbox']));
  expect(counters.forConnection('heating').refreshes).toEqual({ refreshed: 1 });
  expect(counters.forConnection('car').refreshes).toEqual({});
  expect([counters.requestsOf('wallbox'), counters.requestsOf('pump')]).toEqual([{ token: 1 }, {}]);
});

import { expect, it } from 'vitest';
import type { HubEvent } from '../../src/core/reports/hub-event.ts';
import { Counters, Histogram } from '../../src/metrics/counters.ts';

const at = { boot: 'boot-1', uptime: 1000, wall: 0 };

function refreshed(appliance: string, took: number): HubEvent {
  return { kind: 'refreshed', appliance, at, took };
}

it('counts a duration in every bucket that it fits, and adds it up', () => {
  const durations = new Histogram();
  for (const ms of [0, 50, 51, 100, 60_000, 60_001]) durations.observe(ms);
  expect(durations.buckets.map(({ count }) => count)).toEqual([2, 4, 4, 4, 4, 4, 4, 4, 4, 5, 6]);
  expect(durations.sum).toBeCloseTo(120.202, 9);
});

it('counts what ended without a request, and not how long that took', () => {
  const counters = new Counters();
  counters.tell({ kind: 'refresh_failed', appliance: 'a', at, problem: 'store_unwritable', took: null });
  counters.tell({ kind: 'refresh_failed', appliance: 'a', at, problem: 'portal_unreachable', took: 30_000 });
  counters.tell({ kind: 'pairing_failed', appliance: 'a', at, reason: 'expired' });
  counters.tell({ kind: 'token_refused', appliance: 'a', at });
  counters.tell({ kind: 'unpaired', appliance: 'a', at });
  const { refreshes, pairings, refusedTokens } = counters.of('a');
  expect(refreshes).toEqual({ store_unwritable: 1, portal_unreachable: 1 });
  expect(pairings).toEqual({ expired: 1 });
  expect(refusedTokens).toBe(1);
  expect(counters.refreshDurations.sum).toBe(30);
});

it('keeps counts of ten thousand appliances and no more, and of those that are there alone when somebody asks', () => {
  const counters = new Counters();
  for (let index = 0; index < 10_001; index++) counters.tell(refreshed(`a${index}`, 1));
  expect(counters.of('a0').refreshes).toEqual({});
  expect(counters.of('a10000').refreshes).toEqual({ refreshed: 1 });
  counters.keep(new Set(['a10000']));
  expect(counters.of('a10000').refreshes).toEqual({ refreshed: 1 });
  expect(counters.of('a5000').refreshes).toEqual({});
});

import { describe, expect, test } from 'vitest';
import {
  afterClockSet,
  afterNetworkChange,
  afterPortalResponse,
  afterStoreWritable,
  nextAttemptAt,
  onDemandAttemptAt,
  type RefreshHealth,
} from '../../src/core/grants/refresh-health.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

type Failing = Extract<RefreshHealth, { kind: 'failing' }>;

const now = instantAt(HOUR);
const failing = (changes: Partial<Failing> = {}, code: ProblemCode = 'portal_unreachable'): Failing => ({
  kind: 'failing',
  problem: { code, message: '', since: instantAt(0) },
  failures: 6,
  retryAt: 2 * HOUR,
  onDemandAt: HOUR + MINUTE,
  ...changes,
});

/** Each event, with the health that it brings forward. */
const EVENTS = [
  ['the clock was set', afterClockSet, failing({ waitsFor: 'clock' }), 3 * SECOND],
  ['the portal responded', afterPortalResponse, failing({ waitsFor: 'network' }), 5 * SECOND],
  ['the store can be written', afterStoreWritable, failing({}, 'store_unwritable'), 5 * SECOND],
  ['the address changed', afterNetworkChange, failing({ waitsFor: 'network' }), 5 * SECOND],
] as const;

describe.each(EVENTS)('attempts after an event: %s', (_, transition, waiting, window) => {
  test('an attempt that waited for it comes within seconds, by its random fraction', () => {
    for (const fraction of [0, 0.5, 1]) {
      const at = now.uptime + window * fraction;
      expect(transition(waiting, now, fraction)).toMatchObject({ kind: 'failing', retryAt: at, onDemandAt: at });
    }
  });

  test('an attempt that comes sooner anyway stays when it was', () => {
    const soon = { ...waiting, retryAt: now.uptime + 1, onDemandAt: now.uptime + 1 };
    expect(transition(soon, now, 1)).toMatchObject({ retryAt: now.uptime + 1, onDemandAt: now.uptime + 1 });
  });

  test('an attempt that waits for something else stays when it was, and so does a good or refused grant', () => {
    const others: RefreshHealth[] = EVENTS.map(([, , health]) => health).filter(
      (health) => health.problem.code !== waiting.problem.code || health.waitsFor !== waiting.waitsFor,
    );
    const refused = { ...waiting, kind: 'refused', retryAt: 2 * HOUR } as const;
    for (const health of [...others, { kind: 'good' } as const, refused, failing({}, 'portal_rejected')]) {
      expect(transition(health, now, 0.5)).toBe(health);
    }
  });
});

test('the backoff begins anew after the address changed, and continues after the portal or the store is back', () => {
  const network = failing({ waitsFor: 'network' });
  expect(afterNetworkChange(network, now, 1)).toMatchObject({ failures: 0, waitsFor: 'changed_network' });
  for (const health of [
    afterPortalResponse(network, now, 1),
    afterStoreWritable(failing({}, 'store_unwritable'), now, 1),
  ])
    expect(health).toMatchObject({ failures: 6, problem: { since: instantAt(0) } });
});

test('an attempt for an appliance comes at its own time, or with those in the background if it has none', () => {
  const timing = { now, confirmed: null, retryLostAnswer: 'early', lastForcedRefresh: null, startedAt: 0 } as const;
  expect(onDemandAttemptAt(sampleGrant(), failing(), timing)).toBe(HOUR + MINUTE);
  const { onDemandAt: _, ...background } = failing();
  expect(onDemandAttemptAt(sampleGrant(), background, timing)).toBe(2 * HOUR);
  expect(
    afterStoreWritable({ ...background, problem: { ...background.problem, code: 'store_unwritable' } }, now, 1),
  ).toMatchObject({ retryAt: now.uptime + 5 * SECOND, onDemandAt: now.uptime + 5 * SECOND });
});

test('the limit for refreshes after a rejection does not hold back one that is due anyway', () => {
  const limited = { lastForcedRefresh: HOUR - SECOND, startedAt: 0, jitterOffset: 0.5 } as const;
  const timing = { now, confirmed: null, retryLostAnswer: 'early', ...limited } as const;
  const attempts = (lifetime: number) => {
    const grant = sampleGrant({ obtained: instantAt(HOUR - SECOND), lifetime, accessTokenRejectedAt: now });
    const health = { kind: 'good' } as const;
    return {
      background: nextAttemptAt(grant, health, timing),
      onDemand: onDemandAttemptAt(grant, health, timing),
    };
  };
  const byLimit = HOUR - SECOND + MINUTE;
  expect(attempts(HOUR)).toEqual({ background: byLimit, onDemand: byLimit });
  expect(attempts(10 * SECOND)).toEqual({ background: HOUR + 7 * SECOND, onDemand: HOUR + 9 * SECOND });
  // A token that ends before the shortest time between two refreshes.
  expect(attempts(SECOND).onDemand).toBe(HOUR + SECOND);
});

import { expect, test } from 'vitest';
import type { RetryContext } from '../../src/core/grants/backoff.ts';
import { nextAttemptAt } from '../../src/core/grants/refresh-health.ts';
import { afterFailure, stateAtStart } from '../../src/core/grants/refresh-state.ts';
import { HOUR, instantAt, MINUTE, sampleGrant } from './samples.ts';

const made = Date.UTC(2031, 4, 5, 3, 23);
const doubt = { kind: 'copy', lostAt: { boot: '', uptime: 0, wall: made }, sends: 0 } as const;
const grant = sampleGrant({ doubt });
const when = (uptime: number, retryLostAnswer: 'early' | 'late'): RetryContext => ({
  now: instantAt(uptime),
  confirmed: null,
  retryLostAnswer,
  fraction: 0.5,
});

test('the problem of a restored grant names the time of its copy, also while the portal is unreachable', () => {
  const { health, doubt: kept } = stateAtStart(grant, null, when(10 * MINUTE, 'early'));
  expect(kept).toEqual(doubt);
  expect(health).toMatchObject({
    kind: 'failing',
    problem: {
      code: 'answer_lost',
      message:
        'The grant was restored from a copy of 2031-05-05T03:23:00.000Z, so the portal may have replaced the refresh token',
    },
  });
  const next = afterFailure(grant, health, { kind: 'not_sent', detail: 'no route' }, when(11 * MINUTE, 'early'));
  expect(next).toMatchObject({ doubt, health: { problem: { message: expect.stringContaining('copy of 2031') } } });
});

test('with retry_lost_answer late a restored grant waits until its access token has expired', () => {
  const { health } = stateAtStart(grant, null, when(10 * MINUTE, 'late'));
  const timing = { ...when(10 * MINUTE, 'late'), startedAt: 0, jitterOffset: 0, lastForcedRefresh: null };
  expect(nextAttemptAt(grant, health, timing)).toBe(instantAt(HOUR).uptime + 1000);
});

test('the refusal of a restored grant says that it came from a copy, even after a lost answer', () => {
  const lost = afterFailure(grant, { kind: 'good' }, { kind: 'ambiguous', detail: 'reset' }, when(HOUR, 'early'));
  expect(lost.doubt).toEqual({ ...doubt, sends: 1 });
  const refusal = { kind: 'refused', detail: 'invalid_grant', portalTime: null } as const;
  const { health } = afterFailure({ ...grant, doubt: lost.doubt }, lost.health, refusal, when(HOUR, 'early'));
  expect(health).toMatchObject({
    kind: 'refused',
    problem: {
      code: 'refused',
      message:
        'The grant was restored from a copy of 2031-05-05T03:23:00.000Z, and the portal no longer accepts its refresh token, because another hub has used it, or this one after the copy was made',
    },
  });
});

test('a restored grant without a refresh token is not in doubt, because nobody can have used what it has', () => {
  const restored = sampleGrant({ doubt, refreshToken: null });
  expect(stateAtStart(restored, null, when(10 * MINUTE, 'early'))).toEqual({
    doubt: null,
    refused: null,
    misconfigured: null,
    health: { kind: 'good' },
  });
});

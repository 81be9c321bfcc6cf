import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Instant } from '../../src/core/clock.ts';
import { lostAnswerHoldOff } from '../../src/core/grants/backoff.ts';
import { type Grant, remainingLifetime } from '../../src/core/grants/grant.ts';
import type { LostAnswerRetry } from '../../src/core/grants/login-end.ts';
import {
  afterNetworkChange,
  nextAttemptAt,
  onDemandAttemptAt,
  type RefreshHealth,
} from '../../src/core/grants/refresh-health.ts';
import { afterFailure, type RefreshFailure, stateAtStart } from '../../src/core/grants/refresh-state.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { DAY, HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const good: RefreshHealth = { kind: 'good' };
const failing = (code: ProblemCode, failures: number): RefreshHealth => ({
  kind: 'failing',
  problem: { code, message: '', since: instantAt(0) },
  failures,
  retryAt: 0,
});
const context = (now: Instant, changes: { retryLostAnswer?: LostAnswerRetry; fraction?: number } = {}) => ({
  now,
  confirmed: null,
  retryLostAnswer: 'early' as LostAnswerRetry,
  fraction: 0.5,
  ...changes,
});

const outcomes = {
  not_sent: { kind: 'not_sent', detail: 'connect ECONNREFUSED' },
  deferred: { kind: 'deferred', detail: 'HTTP 503', retryAfter: null, portalTime: null },
  ambiguous: { kind: 'ambiguous', detail: 'HTTP 500' },
  refused: { kind: 'refused', detail: 'HTTP 400 invalid_grant', portalTime: null },
  misconfigured: { kind: 'misconfigured', detail: 'HTTP 401 invalid_client', portalTime: null },
  blocked: { kind: 'blocked', detail: 'HTTP 403', portalTime: null },
  rejected: { kind: 'rejected', error: 'invalid_scope', detail: 'HTTP 400 invalid_scope', portalTime: null },
  store_unwritable: { kind: 'store_unwritable', detail: 'the disk is full' },
} as const satisfies Record<string, RefreshFailure>;

/** The schedule input of a hub that has been running since the boot. */
const timetable = (now: Instant, jitterOffset: number, retryLostAnswer: LostAnswerRetry = 'early') => ({
  now,
  confirmed: null,
  retryLostAnswer,
  startedAt: 0,
  jitterOffset,
  lastForcedRefresh: null,
});

/** The grant that the next `afterFailure` gets. */
function after(grant: Grant, state: ReturnType<typeof afterFailure>): Grant {
  const { health: _, ...kept } = state;
  return { ...grant, ...kept };
}

/** When the hub next tries the grant on schedule, and when for an appliance that waits. */
function triedAt(
  grant: Grant,
  state: ReturnType<typeof afterFailure>,
  now: Instant,
  retryLostAnswer: LostAnswerRetry = 'early',
) {
  const timing = timetable(now, 0.5, retryLostAnswer);
  const next = after(grant, state);
  return {
    due: nextAttemptAt(next, state.health, timing),
    onDemand: onDemandAttemptAt(next, state.health, timing),
  };
}

test("a healthy grant is due at 75 to 85 % of its access token's lifetime, spread over the fleet", () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 3000, max: 1e9 }),
      (jitterOffset, lifetime) => {
        const due = nextAttemptAt(sampleGrant({ lifetime }), good, timetable(instantAt(1), jitterOffset)) ?? Number.NaN;
        expect(due).toBeGreaterThanOrEqual(0.75 * lifetime);
        expect(due).toBeLessThanOrEqual(0.85 * lifetime + 1e-3);
      },
    ),
  );
  expect(nextAttemptAt(sampleGrant(), good, timetable(instantAt(1), 0))).toBe(45 * MINUTE);
  expect(nextAttemptAt(sampleGrant(), good, timetable(instantAt(1), 1))).toBe(51 * MINUTE);
});

describe('state after a failed refresh', () => {
  const now = instantAt(48 * MINUTE);
  const doubt = { lostAt: instantAt(47 * MINUTE), sends: 1 };
  const shown = {
    not_sent: 'portal_unreachable',
    deferred: 'portal_deferred',
    ambiguous: 'answer_lost',
    refused: 'refused',
    misconfigured: 'misconfigured',
    blocked: 'portal_rejected',
    rejected: 'portal_rejected',
    store_unwritable: 'store_unwritable',
  } as const;
  const kinds = Object.keys(outcomes) as (keyof typeof outcomes)[];

  describe.each(['early', 'late'] as const)('with retry_lost_answer %s', (retryLostAnswer) => {
    test.each(kinds)('a refresh failure of a grant without doubt gives its problem, doubt and refusal: %s', (kind) => {
      const state = afterFailure(sampleGrant(), good, outcomes[kind], context(now, { retryLostAnswer }));
      expect(state.doubt).toEqual(kind === 'ambiguous' ? { lostAt: now, sends: 1 } : null);
      expect(state.refused).toEqual(kind === 'refused' ? now : null);
      expect(state.health).toMatchObject({
        kind: kind === 'refused' ? 'refused' : 'failing',
        problem: { code: shown[kind], since: now },
        failures: 1,
      });
    });

    test.each(kinds)('a refresh failure of a grant in doubt keeps the doubt: %s', (kind) => {
      const state = afterFailure(sampleGrant({ doubt }), good, outcomes[kind], context(now, { retryLostAnswer }));
      expect(state.doubt).toEqual(kind === 'ambiguous' ? { ...doubt, sends: 2 } : doubt);
      expect(state.refused).toEqual(kind === 'refused' ? now : null);
      expect(state.health).toMatchObject({
        kind: kind === 'refused' ? 'refused' : 'failing',
        problem: { code: kind === 'refused' ? 'refused' : 'answer_lost' },
      });
    });

    test.each(kinds)('a refused grant stays refused and is not retried after the failure %s', (kind) => {
      const since = instantAt(MINUTE);
      const state = afterFailure(
        sampleGrant({ refused: since }),
        good,
        outcomes[kind],
        context(now, { retryLostAnswer }),
      );
      expect(state).toMatchObject({ doubt: null, refused: since, health: { kind: 'refused', retryAt: null } });
      expect(state.health).toMatchObject({ problem: { code: 'refused', since } });
    });
  });

  test('the state after a request that was not sent has the problem, its times and what the retry waits for', () => {
    expect(afterFailure(sampleGrant(), good, outcomes.not_sent, context(now, { fraction: 1 }))).toStrictEqual({
      doubt: null,
      refused: null,
      misconfigured: null,
      health: {
        kind: 'failing',
        problem: {
          code: 'portal_unreachable',
          since: now,
          message: 'The portal could not be reached: connect ECONNREFUSED',
        },
        failures: 1,
        retryAt: now.uptime + 6 * MINUTE,
        onDemandAt: now.uptime + 2 * SECOND,
        waitsFor: 'network',
      },
    });
  });

  test('after a change of the address, retries come within seconds at first, until a request is sent', () => {
    const fail = (health: RefreshHealth, outcome: RefreshFailure) =>
      afterFailure(sampleGrant(), health, outcome, context(now, { fraction: 1 })).health;
    const delayOf = (health: RefreshHealth) => (health.kind === 'failing' ? health.retryAt - now.uptime : null);
    const unreachable = fail(fail(good, outcomes.not_sent), outcomes.not_sent);
    expect(delayOf(unreachable)).toBe(48 * MINUTE);
    const changed = afterNetworkChange(unreachable, now, 1);
    expect(delayOf(changed)).toBe(5 * SECOND);
    const first = fail(changed, outcomes.not_sent);
    const second = fail(first, outcomes.not_sent);
    expect([first, second].map(delayOf)).toEqual([2 * SECOND, 4 * SECOND]);
    const sent = fail(second, outcomes.rejected);
    expect(delayOf(fail(sent, outcomes.not_sent))).toBe(48 * MINUTE);
  });

  test("retries while unreachable start within the token's lifetime and back off for appliances up to five minutes", () => {
    const delays = (grant: Grant, key: 'retryAt' | 'onDemandAt') => {
      let health: RefreshHealth = good;
      return Array.from({ length: 12 }, () => {
        health = afterFailure(grant, health, outcomes.not_sent, context(now, { fraction: 1 })).health;
        return (((health.kind === 'failing' ? health[key] : null) ?? 0) - now.uptime) / SECOND;
      });
    };
    expect(delays(sampleGrant(), 'retryAt')).toEqual([360, ...new Array<number>(11).fill(2880)]);
    expect(delays(sampleGrant(), 'onDemandAt')).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300]);
    expect(delays(sampleGrant({ lifetime: 2 * MINUTE }), 'onDemandAt').at(-1)).toBe(30);
    expect(delays(sampleGrant({ lifetime: SECOND }), 'retryAt').at(-1)).toBe(5);
  });

  test('a deferred refresh is retried when the portal asked for it', () => {
    const outcome = { ...outcomes.deferred, retryAfter: 10 * MINUTE };
    const { health } = afterFailure(sampleGrant(), good, outcome, context(now, { fraction: 0 }));
    expect(health).toMatchObject({ retryAt: now.uptime + 10 * MINUTE });
  });

  test('a Retry-After of many hours is honoured while the access token lives, for at most a day, and its end is shown', () => {
    const outcome = { ...outcomes.deferred, detail: 'HTTP 429', retryAfter: 12 * HOUR };
    const { health } = afterFailure(sampleGrant({ lifetime: DAY }), good, outcome, context(now, { fraction: 0 }));
    expect(health).toMatchObject({ retryAt: now.uptime + 12 * HOUR, onDemandAt: now.uptime + 12 * HOUR });
    expect(health).toMatchObject({
      problem: { message: 'The portal asks to come back later: HTTP 429; the hub waits until 2031-05-05T18:48:00Z' },
    });
    const forever = { ...outcome, retryAfter: 9 * DAY };
    const late = afterFailure(sampleGrant({ lifetime: 9 * DAY }), good, forever, context(now, { fraction: 0 }));
    expect(late.health).toMatchObject({ retryAt: now.uptime + DAY });
    // The login would end meanwhile.
    const limits = { loginLifetime: null, idleLifetime: 3 * HOUR };
    const short = afterFailure(sampleGrant({ lifetime: DAY }), good, outcome, { ...context(now), loginLimits: limits });
    expect(short.health.kind === 'failing' && short.health.retryAt).toBeLessThan(now.uptime + 3 * HOUR);
  });

  test('after the end of the access token the hub waits an hour at a Retry-After, and then at most as long as so far', () => {
    const retryAfter = 12 * HOUR;
    let health: RefreshHealth = good;
    const attempts: number[] = [];
    for (let at = 48 * MINUTE; at <= 12 * HOUR; at = health.retryAt ?? 0) {
      attempts.push(at / HOUR);
      const outcome = { ...outcomes.deferred, retryAfter: retryAfter - at };
      health = afterFailure(sampleGrant(), health, outcome, context(instantAt(at), { fraction: 0 })).health;
      if (health.kind === 'good') break;
    }
    expect(attempts).toEqual([0.8, 1.8, 2.8, 4.8, 8.8, 12]);
  });

  test('the first deferral after an outage is retried sooner with Retry-After, and backed off from without', () => {
    const health = failing('portal_unreachable', 6);
    const retryAt = (retryAfter: number | null) => {
      const outcome = { ...outcomes.deferred, retryAfter };
      return afterFailure(sampleGrant(), health, outcome, context(now, { fraction: 1 })).health;
    };
    expect(retryAt(MINUTE)).toMatchObject({ retryAt: now.uptime + 6 * MINUTE });
    expect(retryAt(null)).toMatchObject({ retryAt: now.uptime + 48 * MINUTE });
  });

  test('backoff applies if the portal defers a refresh by the same short time again and again', () => {
    const health = failing('portal_deferred', 6);
    const outcome = { ...outcomes.deferred, retryAfter: SECOND };
    const next = afterFailure(sampleGrant(), health, outcome, context(now, { fraction: 1 }));
    expect(next.health).toMatchObject({ retryAt: now.uptime + 48 * MINUTE, onDemandAt: now.uptime + 128 * SECOND });
  });

  test('a misconfigured grant is retried once an hour in the end', () => {
    const health = failing('misconfigured', 20);
    const next = afterFailure(sampleGrant(), health, outcomes.misconfigured, context(now, { fraction: 1 }));
    expect(next.health).toMatchObject({ retryAt: now.uptime + HOUR });
  });

  test('a grant remembers that it was misconfigured until there are new tokens or it is refused', () => {
    const first = afterFailure(sampleGrant(), good, outcomes.misconfigured, context(now));
    expect(first.misconfigured).toEqual(now);
    for (const [kind, outcome] of Object.entries(outcomes)) {
      const next = afterFailure(
        after(sampleGrant(), first),
        first.health,
        outcome,
        context(instantAt(now.uptime + MINUTE)),
      );
      expect(next.misconfigured).toEqual(kind === 'refused' ? null : now);
    }
  });

  test('a problem keeps its start time until another problem replaces it', () => {
    const first = afterFailure(sampleGrant(), good, outcomes.not_sent, context(now)).health;
    const later = instantAt(now.uptime + MINUTE);
    const second = afterFailure(sampleGrant(), first, outcomes.not_sent, context(later)).health;
    expect(second).toMatchObject({ failures: 2, problem: { since: now } });
    const third = afterFailure(sampleGrant(), second, outcomes.rejected, context(later)).health;
    expect(third).toMatchObject({ failures: 3, problem: { since: later } });
  });

  test('the message of a refusal names the refused grant or, with its time, the lost answer', () => {
    const message = (grant: Grant) => {
      const { health } = afterFailure(grant, good, outcomes.refused, context(now));
      return health.kind === 'good' ? '' : health.problem.message;
    };
    expect(message(sampleGrant())).toBe('The portal refused the grant');
    const end = ', and the portal gave no refresh token: ask for the scope offline_access, then connect again';
    expect(message(sampleGrant({ refreshToken: null }))).toBe(`The access token has ended${end}`);
    expect(message(sampleGrant({ refreshToken: null, accessTokenRejectedAt: now }))).toBe(
      `The portal refuses the access token${end}`,
    );
    expect(message(sampleGrant({ doubt }))).toBe(
      'An answer was lost on 2031-05-05T06:47:00.000Z, and the portal no longer accepts the previous refresh token',
    );
  });
});

describe('retries of a grant in doubt', () => {
  const now = instantAt(48 * MINUTE);

  test('the problem of a grant in doubt names the lost answer first, and then what failed last', () => {
    const doubt = { lostAt: now, sends: 1 };
    const { health } = afterFailure(sampleGrant({ doubt }), good, outcomes.not_sent, context(now));
    expect(health).toMatchObject({
      problem: {
        message: `An answer was lost on 2031-05-05T06:48:00.000Z, so the portal may have replaced the refresh token (The portal could not be reached: connect ECONNREFUSED)`,
      },
    });
  });

  test('the old refresh token is not held off while the age of the access token is unknown after a reboot', () => {
    const grant = sampleGrant({ doubt: { lostAt: now, sends: 2 } });
    for (const retryLostAnswer of ['early', 'late'] as const) {
      expect(lostAnswerHoldOff(grant, { now: instantAt(MINUTE, 'boot-2'), confirmed: null, retryLostAnswer })).toBe(0);
    }
  });

  test('a grant in doubt that was refused is never tried, and a retry time that has passed stays as it was', () => {
    const doubt = { lostAt: now, sends: 2 };
    const refused = afterFailure(sampleGrant({ doubt }), good, outcomes.refused, context(now));
    expect(triedAt(sampleGrant(), refused, now)).toEqual({ due: null, onDemand: null });
    const failed = afterFailure(sampleGrant(), good, outcomes.not_sent, context(now, { fraction: 1 }));
    const [due, onDemand] = [now.uptime + 6 * MINUTE, now.uptime + 2 * SECOND];
    expect(triedAt(sampleGrant(), failed, instantAt(9 * HOUR))).toEqual({ due, onDemand });
  });

  test.each([0, 0.5, 1])('retry_lost_answer early tries once more after 1 to 3 s (jitter %d)', (fraction) => {
    const { health } = afterFailure(sampleGrant(), good, outcomes.ambiguous, context(now, { fraction }));
    expect(health).toMatchObject({ retryAt: now.uptime + SECOND + 2 * SECOND * fraction });
  });

  test('after its early retry, retry_lost_answer early waits until shortly before the access token expires', () => {
    const first = afterFailure(sampleGrant(), good, outcomes.ambiguous, context(now));
    const later = instantAt(now.uptime + 2 * SECOND);
    const second = afterFailure(after(sampleGrant(), first), first.health, outcomes.ambiguous, context(later));
    const then = HOUR - MINUTE;
    expect(triedAt(sampleGrant(), second, later)).toEqual({ due: then, onDemand: then });
    expect(second.doubt).toEqual({ lostAt: now, sends: 2 });
  });

  test('retry_lost_answer late waits from the first lost answer until the access token has expired', () => {
    const lost = afterFailure(sampleGrant(), good, outcomes.ambiguous, context(now, { retryLostAnswer: 'late' }));
    const then = HOUR + SECOND;
    expect(triedAt(sampleGrant(), lost, now, 'late')).toEqual({ due: then, onDemand: then });
  });

  const others = (Object.keys(outcomes) as (keyof typeof outcomes)[]).filter(
    (kind) => kind !== 'refused' && kind !== 'ambiguous',
  );
  test.each(others)('the failure %s of a forced refresh does not shorten the wait of a grant in doubt', (kind) => {
    const once = sampleGrant({ doubt: { lostAt: now, sends: 1 } });
    const twice = sampleGrant({ doubt: { lostAt: now, sends: 2 } });
    const retryAt = (grant: Grant, retryLostAnswer: LostAnswerRetry) =>
      triedAt(
        grant,
        afterFailure(grant, good, outcomes[kind], context(now, { retryLostAnswer, fraction: 0 })),
        now,
        retryLostAnswer,
      ).due;
    expect(retryAt(once, 'late')).toBe(HOUR + SECOND);
    expect(retryAt(twice, 'early')).toBe(HOUR - MINUTE);
    // The one early retry did not reach the portal, or the portal deferred it.
    expect(retryAt(once, 'early')).toBe(now.uptime + SECOND);
  });

  test('the hold-off after a lost answer depends on the access token, the mode and the number of sends', () => {
    const holdOff = (uptime: number, retryLostAnswer: LostAnswerRetry, sends: number) =>
      lostAnswerHoldOff(sampleGrant({ doubt: { lostAt: now, sends } }), {
        now: instantAt(uptime),
        confirmed: null,
        retryLostAnswer,
      });
    expect(holdOff(48 * MINUTE, 'early', 1)).toBe(0);
    expect(holdOff(48 * MINUTE, 'early', 2)).toBe(11 * MINUTE);
    expect(holdOff(HOUR - MINUTE, 'early', 2)).toBe(0);
    expect(holdOff(48 * MINUTE, 'late', 1)).toBe(12 * MINUTE + SECOND);
    expect(holdOff(HOUR - 1, 'late', 1)).toBe(SECOND + 1);
    expect(holdOff(HOUR + SECOND, 'late', 1)).toBe(0);
    expect(lostAnswerHoldOff(sampleGrant(), { now, confirmed: null, retryLostAnswer: 'late' })).toBe(0);
  });

  test.each(['early', 'late'] as const)(
    'retry_lost_answer %s backs off once the access token has expired',
    (retryLostAnswer) => {
      // With `late`, the first lost answer is enough.
      const doubt = retryLostAnswer === 'late' ? null : { lostAt: instantAt(48 * MINUTE), sends: 3 };
      const grant = sampleGrant({ doubt });
      const health = failing('answer_lost', 6);
      const dead = instantAt(2 * HOUR);
      const state = afterFailure(grant, health, outcomes.ambiguous, context(dead, { retryLostAnswer, fraction: 1 }));
      expect(remainingLifetime(grant, dead, null)).toBe(0);
      expect(state.health).toMatchObject({
        retryAt: dead.uptime + 48 * MINUTE,
        onDemandAt: dead.uptime + 128 * SECOND,
      });
    },
  );
});

describe('portal that rejects refreshes', () => {
  /** The health after rejections (or other failures) at these uptimes. */
  function series(grant: Grant, ...events: readonly [number, RefreshFailure][]): RefreshHealth {
    let state: ReturnType<typeof afterFailure> = { ...grant, health: good };
    for (const [uptime, outcome] of events) {
      state = afterFailure(after(grant, state), state.health, outcome, context(instantAt(uptime)));
    }
    return state.health;
  }

  const { blocked, rejected, not_sent, ambiguous } = outcomes;

  test('three rejections over an hour with an expired access token need a person, and are retried hourly and on demand', () => {
    const health = series(sampleGrant(), [HOUR, rejected], [1.5 * HOUR, rejected], [2 * HOUR, rejected]);
    expect(health).toMatchObject({ kind: 'refused', problem: { code: 'refused' }, retryAt: 3 * HOUR });
    const onDemand = onDemandAttemptAt(sampleGrant(), health, timetable(instantAt(2 * HOUR), 0.5));
    expect(onDemand).toBeLessThanOrEqual(2 * HOUR + 5 * MINUTE);
  });

  const invalidRequest = { ...rejected, error: 'invalid_request', detail: 'HTTP 400 invalid_request' };
  /** A refresh has succeeded since the login. */
  const refreshed = sampleGrant({
    login: { pairing: 'a-pairing', at: instantAt(0), portalTime: null, refreshTokenLifetime: null },
  });

  test('invalid_request for a request that was accepted before needs a person within ten minutes of the end of the token', () => {
    const grant = { ...refreshed, obtained: instantAt(HOUR) };
    const events: [number, RefreshFailure][] = [];
    let health: RefreshHealth = good;
    for (let at = HOUR + 48 * MINUTE; health.kind !== 'refused' && events.length < 9; ) {
      events.push([at, invalidRequest]);
      health = series(grant, ...events);
      at = health.kind === 'good' ? 0 : (health.retryAt ?? 0);
    }
    expect(events.length).toBeGreaterThanOrEqual(3);
    expect(events.at(-1)?.[0]).toBeLessThanOrEqual(2 * HOUR + 10 * MINUTE);
    const message =
      'The portal rejects the request: HTTP 400 invalid_request, although it accepted the same request before, repeatedly';
    expect(health).toMatchObject({ kind: 'refused', problem: { message } });
  });

  test('invalid_request needs a person as late as any rejection if no refresh has succeeded since the login', () => {
    const grant = { ...refreshed, obtained: instantAt(0) };
    const quickly = [HOUR, HOUR + MINUTE, HOUR + 2 * MINUTE].map((at): [number, RefreshFailure] => [
      at,
      invalidRequest,
    ]);
    expect(series(grant, ...quickly)).toMatchObject({ kind: 'failing' });
    expect(series({ ...refreshed, obtained: instantAt(1) }, ...quickly)).toMatchObject({ kind: 'refused' });
    expect(series(grant, ...quickly, [2 * HOUR, invalidRequest])).toMatchObject({ kind: 'refused' });
    const mixed = quickly.map(([at], index): [number, RefreshFailure] => [at, index === 2 ? invalidRequest : rejected]);
    expect(series({ ...refreshed, obtained: instantAt(1) }, ...mixed)).toMatchObject({ kind: 'failing' });
  });

  test('invalid_request needs no person while the access token is valid', () => {
    const grant = { ...refreshed, obtained: instantAt(1), lifetime: 10 * HOUR };
    const often = [1, 2, 3, 4].map((n): [number, RefreshFailure] => [n * HOUR, invalidRequest]);
    expect(series(grant, ...often)).toMatchObject({ kind: 'failing' });
  });

  test('answers of a firewall never need a person, and are retried as those of an unreachable portal', () => {
    const days = (outcome: RefreshFailure) =>
      series(sampleGrant(), ...Array.from({ length: 99 }, (_, n): [number, RefreshFailure] => [n * HOUR, outcome]));
    const { retryAt, onDemandAt } = days(not_sent) as Extract<RefreshHealth, { kind: 'failing' }>;
    expect(days(blocked)).toMatchObject({ kind: 'failing', retryAt, onDemandAt, waitsFor: 'network' });
  });

  test('an answer of a firewall between rejections neither counts nor starts their count again', () => {
    const twice = series(sampleGrant(), [HOUR, rejected], [1.5 * HOUR, blocked], [2 * HOUR, rejected]);
    expect(twice).toMatchObject({ kind: 'failing' });
    const thrice = series(
      sampleGrant(),
      [HOUR, rejected],
      [1.2 * HOUR, rejected],
      [1.5 * HOUR, blocked],
      [2 * HOUR, rejected],
    );
    expect(thrice).toMatchObject({ kind: 'refused' });
  });

  test('a rejected refresh is retried after fewer than three rejections, within the hour, or with a valid token', () => {
    const twice = series(sampleGrant(), [HOUR, rejected], [2 * HOUR, rejected]);
    const quickly = series(sampleGrant(), [HOUR, rejected], [1.5 * HOUR, rejected], [2 * HOUR - 1, rejected]);
    const alive = series(
      sampleGrant({ lifetime: 10 * HOUR }),
      [HOUR, rejected],
      [2 * HOUR, rejected],
      [3 * HOUR, rejected],
    );
    for (const health of [twice, quickly, alive]) expect(health).toMatchObject({ kind: 'failing' });
  });

  test('a grant that needs a person is retried once an hour while the portal keeps rejecting it', () => {
    const health = series(
      sampleGrant(),
      [HOUR, rejected],
      [1.5 * HOUR, rejected],
      [2 * HOUR, rejected],
      [3 * HOUR, rejected],
    );
    const message = 'The portal rejects the request: HTTP 400 invalid_scope, repeatedly';
    expect(health).toMatchObject({ problem: { since: instantAt(HOUR), message }, retryAt: 4 * HOUR });
    expect(health.kind).toBe('refused');
  });

  test('a grant that needed a person does so no more when the portal responds in another way', () => {
    const health = series(
      sampleGrant(),
      [HOUR, rejected],
      [1.5 * HOUR, rejected],
      [2 * HOUR, rejected],
      [3 * HOUR, outcomes.deferred],
    );
    expect(health).toMatchObject({ kind: 'failing', problem: { code: 'portal_deferred' } });
  });

  test('a grant that needs a person still does when the portal is unreachable at the next retry', () => {
    const health = series(
      sampleGrant(),
      [HOUR, rejected],
      [1.5 * HOUR, rejected],
      [2 * HOUR, rejected],
      [3 * HOUR, not_sent],
    );
    expect(health).toMatchObject({ kind: 'refused' });
    expect(health.kind === 'good' ? 0 : health.retryAt).toBeLessThan(3 * HOUR + 48 * MINUTE);
  });

  test('failures of other kinds before a rejection do not count towards needing a person', () => {
    const before = Array.from({ length: 20 }, (_, index): [number, RefreshFailure] => [index * MINUTE, not_sent]);
    expect(series(sampleGrant(), ...before, [HOUR, rejected], [2 * HOUR, rejected])).toMatchObject({
      kind: 'failing',
    });
  });

  test('in doubt, the time of the lost answer does not count as the time of the first rejection', () => {
    const health = series(
      sampleGrant(),
      [10 * MINUTE, ambiguous],
      [10 * MINUTE + 2000, ambiguous],
      [2 * HOUR, rejected],
    );
    expect(health).toMatchObject({ kind: 'failing', problem: { code: 'answer_lost' } });
  });

  test('another response between two rejections starts their count again', () => {
    const health = series(
      sampleGrant(),
      [HOUR, rejected],
      [1.5 * HOUR, rejected],
      [1.6 * HOUR, outcomes.deferred],
      [2 * HOUR, rejected],
    );
    expect(health).toMatchObject({ kind: 'failing' });
  });
});

describe("refresh state at the hub's start", () => {
  const now = instantAt(30 * SECOND, 'boot-2');

  test('a grant without problems is good at the start', () => {
    const state = stateAtStart(sampleGrant(), null, context(now));
    expect(state).toEqual({ doubt: null, refused: null, misconfigured: null, health: good });
  });

  test('a misconfigured grant is retried within seconds of the start and stays misconfigured until then', () => {
    const since = instantAt(10 * MINUTE);
    const { health } = stateAtStart(sampleGrant({ misconfigured: since }), null, context(now));
    const retryAt = now.uptime + 1.5 * SECOND;
    expect(health).toMatchObject({
      kind: 'failing',
      problem: { code: 'misconfigured', since, condition: 'credentials_untried' },
      retryAt,
    });
    const refused = stateAtStart(sampleGrant({ refused: since, misconfigured: since }), null, context(now));
    expect(refused.health).toMatchObject({ kind: 'refused' });
  });

  test('an attempt without an end counts as an answer lost when the attempt began', () => {
    const attempt = instantAt(46 * MINUTE);
    const state = stateAtStart(sampleGrant(), attempt, context(now));
    expect(state.doubt).toEqual({ lostAt: attempt, sends: 1 });
    expect(state.health).toMatchObject({
      kind: 'failing',
      problem: { code: 'answer_lost', since: attempt },
      retryAt: now.uptime + 2 * SECOND,
    });
  });

  test('an attempt without an end adds a send to a grant in doubt', () => {
    const doubt = { lostAt: instantAt(MINUTE), sends: 1 };
    const state = stateAtStart(sampleGrant({ doubt }), instantAt(46 * MINUTE), context(instantAt(47 * MINUTE)));
    expect(state.doubt).toEqual({ ...doubt, sends: 2 });
    expect(triedAt(sampleGrant(), state, instantAt(47 * MINUTE)).due).toBe(HOUR - MINUTE);
  });

  test('a grant stays in doubt over a restart, and retry_lost_answer late still waits for the token to expire', () => {
    const doubt = { lostAt: instantAt(46 * MINUTE), sends: 1 };
    const state = stateAtStart(
      sampleGrant({ doubt }),
      null,
      context(instantAt(47 * MINUTE), { retryLostAnswer: 'late' }),
    );
    expect(state).toMatchObject({ doubt, refused: null, health: { kind: 'failing' } });
    expect(triedAt(sampleGrant(), state, instantAt(47 * MINUTE), 'late').due).toBe(HOUR + SECOND);
  });

  test('a refused grant stays refused at the start, with or without an open attempt', () => {
    for (const attempt of [null, instantAt(50 * MINUTE)]) {
      const refused = instantAt(MINUTE);
      const state = stateAtStart(sampleGrant({ refused }), attempt, context(now));
      expect(state).toMatchObject({ refused, health: { kind: 'refused', retryAt: null } });
    }
  });
});

describe('refresh after a rejected access token', () => {
  const grant = sampleGrant({ accessTokenRejectedAt: instantAt(30 * MINUTE) });
  const now = instantAt(30 * MINUTE);

  test('a rejected access token is refreshed at once, or a minute after the previous forced refresh', () => {
    expect(nextAttemptAt(grant, good, timetable(now, 0.5))).toBe(now.uptime);
    expect(onDemandAttemptAt(grant, good, timetable(now, 0.5))).toBe(now.uptime);
    const justTried = { ...timetable(now, 0.5), lastForcedRefresh: now.uptime - SECOND };
    expect(nextAttemptAt(grant, good, justTried)).toBe(now.uptime + 59 * SECOND);
    expect(onDemandAttemptAt(grant, good, justTried)).toBe(now.uptime + 59 * SECOND);
  });

  test('an access token without a refresh token, once it was rejected, is never a reason to wait', () => {
    const without = { ...grant, refreshToken: null };
    const justTried = { ...timetable(now, 0.5), lastForcedRefresh: now.uptime - SECOND };
    expect(nextAttemptAt(without, good, justTried)).toBe(now.uptime);
    expect(onDemandAttemptAt(without, good, justTried)).toBe(now.uptime);
  });

  test.each(['early', 'late'] as const)(
    'a rejected access token ends the wait of a grant in doubt (retry_lost_answer %s)',
    (retryLostAnswer) => {
      const doubt = { lostAt: instantAt(29 * MINUTE), sends: 1 };
      const before = afterFailure(sampleGrant({ doubt }), good, outcomes.ambiguous, context(now, { retryLostAnswer }));
      expect(triedAt(sampleGrant(), before, now, retryLostAnswer).due).toBe(
        retryLostAnswer === 'early' ? HOUR - MINUTE : HOUR + SECOND,
      );
      const soon = { due: now.uptime + SECOND, onDemand: now.uptime + SECOND };
      expect(triedAt(grant, before, now, retryLostAnswer)).toEqual(soon);
      const after = afterFailure({ ...grant, doubt }, good, outcomes.ambiguous, context(now, { retryLostAnswer }));
      expect(triedAt(grant, after, now, retryLostAnswer)).toEqual(soon);
      const started = stateAtStart(
        sampleGrant({ doubt: { ...doubt, sends: 2 } }),
        null,
        context(now, { retryLostAnswer }),
      );
      expect(triedAt(grant, started, now, retryLostAnswer)).toEqual(soon);
    },
  );

  test("a rejected access token is not refreshed before the portal's Retry-After has passed", () => {
    const doubt = { lostAt: instantAt(29 * MINUTE), sends: 2 };
    const outcome = { ...outcomes.deferred, retryAfter: 5 * MINUTE };
    const deferred = afterFailure(sampleGrant({ doubt }), good, outcome, context(now, { fraction: 0 }));
    expect(triedAt(grant, deferred, now).due).toBe(now.uptime + 5 * MINUTE);
  });
});

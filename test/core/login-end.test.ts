import { describe, expect, test } from 'vitest';
import type { Instant } from '../../src/core/clock.ts';
import { type Grant, grantFromTokenResponse, type Login } from '../../src/core/grants/grant.ts';
import { type LoginLimits, loginEnd } from '../../src/core/grants/login-end.ts';
import { afterFailure, stateAtStart } from '../../src/core/grants/refresh-state.ts';
import { nextRefreshAt } from '../../src/core/grants/schedule.ts';
import { currentNotice, resolvedMessage, subjectNotice } from '../../src/core/health/notice-policy.ts';
import { Secret } from '../../src/core/secret.ts';
import { DAY, HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const NONE: LoginLimits = { loginLifetime: null, idleLifetime: null };

/** The wall clock of a portal at an instant of the first boot. */
const portalTimeAt = (at: number) => instantAt(at).wall;

function loginAt(at: Instant, portalTime: number, refreshTokenLifetime: number | null = null): Login {
  return { pairing: 'a-pairing', at, portalTime, refreshTokenLifetime };
}

/** A grant of a login at instant 0. @param refreshTokenLifetime in its token response */
function loggedIn(refreshTokenLifetime?: number, lifetime = HOUR): Grant {
  const login = loginAt(instantAt(0), portalTimeAt(0), refreshTokenLifetime);
  return sampleGrant({ login, lifetime, ...(refreshTokenLifetime !== undefined && { refreshTokenLifetime }) });
}

/** The grant after a refresh. @param refreshTokenLifetime in its token response */
function refreshed(grant: Grant, at: number, refreshTokenLifetime?: number, boot = 'boot-1'): Grant {
  const tokens = {
    accessToken: new Secret(`token-${at}`),
    refreshToken: null,
    scope: null,
    lifetime: grant.lifetime,
    ...(refreshTokenLifetime !== undefined && { refreshTokenLifetime }),
  };
  return grantFromTokenResponse(grant, grant.refreshToken, tokens, instantAt(at, boot), portalTimeAt(at));
}

/** What is left of the login, in ms, and whether a person is reminded. */
function endOf(grant: Grant, limits: LoginLimits, at: number) {
  const end = loginEnd(grant, limits, instantAt(at), null);
  return end && { remaining: end.remaining, isNear: end.remaining <= end.reminder };
}

describe('end of a login', () => {
  test('a login without a limit has no end', () => {
    expect(endOf(loggedIn(), NONE, DAY)).toBeNull();
  });

  test.each<[what: string, whole: number, reminder: number]>([
    ['a quarter of a week', 7 * DAY, 1.75 * DAY],
    ['a quarter of a month', 30 * DAY, 7.5 * DAY],
    ['at most two weeks, for one of a year', 365 * DAY, 14 * DAY],
    ['at least a day, for one of three days', 3 * DAY, DAY],
    ['half of the login, for one of a day', DAY, DAY / 2],
  ])('a person is reminded before a login ends: %s', (_, whole, reminder) => {
    const limits = { ...NONE, loginLifetime: whole };
    const grant = loggedIn();
    expect(endOf(grant, limits, whole - reminder - 1)).toEqual({ remaining: reminder + 1, isNear: false });
    expect(endOf(grant, limits, whole - reminder)).toEqual({ remaining: reminder, isNear: true });
    expect(endOf(grant, limits, whole + HOUR)).toEqual({ remaining: -HOUR, isNear: true });
    // A refresh does not put this end off.
    const again = refreshed(grant, whole - HOUR);
    expect(endOf(again, limits, whole - HOUR)).toEqual({ remaining: HOUR, isNear: true });
  });

  test('the end of a login is unknown after a reboot until the clock is confirmed', () => {
    const limits = { ...NONE, loginLifetime: 7 * DAY };
    const now = instantAt(MINUTE, 'boot-2');
    expect(loginEnd(loggedIn(), limits, now, null)).toBeNull();
    const confirmed = { at: instantAt(0, 'boot-2'), wall: portalTimeAt(2 * DAY) };
    expect(loginEnd(loggedIn(), limits, now, confirmed)?.remaining).toBe(5 * DAY - MINUTE - SECOND);
  });

  test('the end of a login has a time by the clock that the hub had at the login, also after a reboot', () => {
    const limits = { ...NONE, loginLifetime: 7 * DAY };
    const wrong = {
      ...loggedIn(),
      login: loginAt({ ...instantAt(0), wall: 0 }, 0),
    };
    expect(loginEnd(wrong, limits, instantAt(DAY), null)?.recorded).toBe(7 * DAY);
  });

  test('a login without a refresh token ends with its access token, and a person is reminded at once', () => {
    const grant = { ...loggedIn(), refreshToken: null };
    const limits = { loginLifetime: 7 * DAY, idleLifetime: MINUTE };
    expect(endOf(grant, NONE, 0)).toEqual({ remaining: HOUR, isNear: true });
    expect(endOf(grant, limits, 50 * MINUTE)).toEqual({ remaining: 10 * MINUTE, isNear: true });
    expect(loginEnd(grant, NONE, instantAt(MINUTE, 'boot-2'), null)).toBeNull();
  });

  test('an imported grant, whose login is unknown, has no end by the lifetime of logins', () => {
    expect(endOf(sampleGrant(), { ...NONE, loginLifetime: DAY }, HOUR)).toBeNull();
  });

  test('the earliest of several ends counts', () => {
    const shrunk = refreshed(loggedIn(10 * DAY), 6 * DAY, 4 * DAY);
    expect(endOf(shrunk, { ...NONE, loginLifetime: 12 * DAY }, 6 * DAY)?.remaining).toBe(4 * DAY);
    expect(endOf(shrunk, { ...NONE, loginLifetime: 7 * DAY }, 6 * DAY)?.remaining).toBe(DAY);
  });

  test('an idle limit is no end, because the next refresh puts it off, and hides no end that comes later', () => {
    const idle = { ...NONE, idleLifetime: DAY };
    expect(endOf(loggedIn(), idle, DAY - 1)).toBeNull();
    const grant = refreshed(loggedIn(), 24 * DAY);
    expect(endOf(grant, { ...idle, loginLifetime: 30 * DAY }, 24 * DAY)).toEqual({ remaining: 6 * DAY, isNear: true });
  });
});

describe('lifetime of a refresh token in the responses', () => {
  // Access tokens that live for a minute, an hour, and for longer than the refresh tokens.
  test.each([
    [MINUTE, HOUR],
    [HOUR, 30 * DAY],
    [60 * DAY, 10 * DAY],
    [5 * MINUTE, 30 * MINUTE],
  ])('one that begins anew with each refresh never leads to a reminder (%i ms, %i ms)', (lifetime, whole) => {
    let grant = loggedIn(whole, lifetime);
    for (let at = 0, refreshes = 0; refreshes < 50; refreshes++) {
      const due = at + 0.85 * Math.min(lifetime, whole);
      expect(endOf(grant, NONE, due)).toBeNull();
      // A person forces a refresh now and then, for example right after the login.
      at = refreshes % 7 === 0 ? at + 20 * SECOND : due;
      // Whole seconds, and a portal that takes a second longer than usual.
      grant = refreshed(grant, at, whole - (refreshes % 3) * SECOND);
    }
  });

  test('one with less than 98 % of the whole lifetime has shrunk, and one of an unknown login has not', () => {
    const reminderOf = (lifetime: number, login = loggedIn(100 * DAY)) =>
      loginEnd({ ...login, refreshTokenLifetime: lifetime }, NONE, instantAt(0), null)?.reminder;
    expect([reminderOf(98 * DAY), reminderOf(98 * DAY - 1)]).toEqual([undefined, 14 * DAY]);
    expect(reminderOf(DAY, sampleGrant())).toBeUndefined();
  });

  test('one whose end stays where it was leads to a reminder', () => {
    let grant = loggedIn(7 * DAY);
    const reminded: number[] = [];
    for (let at = HOUR; at < 7 * DAY; at += HOUR) {
      // The hub is restarted on each day; the boot clock is that of the samples.
      grant = refreshed(grant, at, Math.floor((7 * DAY - at) / SECOND) * SECOND, `boot-${1 + Math.floor(at / DAY)}`);
      const end = loginEnd(grant, NONE, grant.obtained, null);
      if (end !== null && end.remaining <= end.reminder) reminded.push(end.remaining);
    }
    expect(reminded[0]).toBe(1.75 * DAY);
    expect(reminded.at(-1)).toBe(HOUR);
  });
});

describe('refresh of a grant whose refresh token has a limit', () => {
  const timing = { now: instantAt(0), confirmed: null, startedAt: 0, jitterOffset: 0.5, lastForcedRefresh: null };
  const idle = { loginLifetime: null, idleLifetime: 10 * DAY };
  const grant = loggedIn(undefined, 60 * DAY);

  test('a refresh comes before an idle limit that is shorter than the lifetime of the access token', () => {
    expect(nextRefreshAt(grant, timing)).toBe(48 * DAY);
    expect(nextRefreshAt(grant, { ...timing, loginLimits: idle })).toBe(8 * DAY);
    expect(nextRefreshAt({ ...grant, refreshTokenLifetime: 5 * DAY }, { ...timing, loginLimits: idle })).toBe(4 * DAY);
  });

  test('a refresh that became due before a start, or of a token of unknown age, comes before the idle limit', () => {
    const late = { ...timing, jitterOffset: 1, loginLimits: idle };
    expect(nextRefreshAt(grant, { ...late, startedAt: 9.5 * DAY, now: instantAt(9.5 * DAY) })).toBe(9.75 * DAY);
    expect(nextRefreshAt(grant, { ...late, startedAt: 11 * DAY, now: instantAt(11 * DAY) })).toBe(11 * DAY);
    expect(nextRefreshAt(grant, { ...late, now: instantAt(MINUTE, 'boot-2') })).toBe(DAY / 2);
  });

  test('a failed refresh is tried again before a refresh token that lives for half an hour expires', () => {
    const context = { now: instantAt(0), confirmed: null, retryLostAnswer: 'late', fraction: 1 } as const;
    const short = { ...grant, refreshTokenLifetime: 30 * MINUTE };
    const outcome = { kind: 'not_sent', detail: 'refused' } as const;
    const { health } = afterFailure(short, { kind: 'good' }, outcome, context);
    expect(health.kind === 'failing' && health.retryAt).toBe(3 * MINUTE);
  });

  test('a refresh that ends the access token comes a minute, or a tenth of its lifetime, before its end', () => {
    const late = { ...timing, endsAccessToken: true };
    expect(nextRefreshAt(loggedIn(), late)).toBe(HOUR - MINUTE);
    expect(nextRefreshAt(loggedIn(undefined, 5 * MINUTE), late)).toBe(4.5 * MINUTE);
  });
});

describe('refusal of a grant', () => {
  const limits = { loginLifetime: 7 * DAY, idleLifetime: null };
  const context = (at: number) =>
    ({ now: instantAt(at), confirmed: null, retryLostAnswer: 'late', fraction: 0, loginLimits: limits }) as const;
  const refusedAt = (at: number, grant = loggedIn()) => {
    const outcome = { kind: 'refused', detail: '', portalTime: null } as const;
    return afterFailure(grant, { kind: 'good' }, outcome, context(at));
  };
  const messageOf = ({ health }: ReturnType<typeof refusedAt>) =>
    health.kind === 'good' ? '' : health.problem.message;

  test('a refusal after the end of the login says that it was expected, after a restart too', () => {
    const expected = 'The login ended by itself at 2031-05-12T06:00:00Z, as expected, and the portal refused the grant';
    const state = refusedAt(7 * DAY + MINUTE);
    expect(messageOf(state)).toBe(expected);
    const { health: _, ...stored } = state;
    expect(messageOf(stateAtStart({ ...loggedIn(), ...stored }, null, context(8 * DAY)))).toBe(expected);
  });

  test('a refusal before the end of the login does not say so', () => {
    expect(messageOf(refusedAt(7 * DAY - HOUR))).toBe('The portal refused the grant');
    expect(messageOf(refusedAt(7 * DAY - MINUTE - 1))).toBe('The portal refused the grant');
  });

  test('a refusal up to a minute before the end of the login is due to it, by the clock of the portal at the login', () => {
    expect(messageOf(refusedAt(7 * DAY - MINUTE))).toMatch(/^The login ended by itself at 2031-05-12T06:00:00Z/);
    const grant = loggedIn();
    const login = loginAt({ ...instantAt(0), wall: 0 }, portalTimeAt(0));
    expect(messageOf(refusedAt(7 * DAY - HOUR, { ...grant, login }))).toBe('The portal refused the grant');
    expect(messageOf(refusedAt(7 * DAY, { ...grant, login }))).toMatch(/^The login ended by itself at 2031-05-12/);
  });
});

describe('notice about the end of a login', () => {
  const condition = (code: 'login_ending' | 'portal_unreachable', severity: 'warning' | 'error' = 'warning') => ({
    code,
    severity,
    connection: 'wallbox',
    appliance: 'wallbox',
    appliances: ['wallbox'],
    message: `It is ${code}`,
    what_to_do: '',
    since: '2031-05-10T06:00:00Z',
    until: null,
  });
  const grant = { generation: 1, isFailing: false, remaining: HOUR, lifetime: HOUR, overdue: 0 };
  const subject = { key: 'appliance wallbox', title: 'wallbox', state: 'active', grant } as const;
  const ending = condition('login_ending');
  const notice = subjectNotice({ ...subject, condition: ending }, null);

  test('a refresh that fails for a short time changes nothing about it', () => {
    if (notice === null) throw new Error('there is no notice');
    const failing = { duration: 10 * MINUTE, since: ending.since };
    const facts = { ...subject, condition: condition('portal_unreachable'), reminder: ending };
    const found = subjectNotice(facts, failing);
    expect(found).toMatchObject({ code: 'login_ending', message: 'It is login_ending' });
    expect(currentNotice({ notice, generation: 1 }, { facts, notice: found })).toMatchObject({ code: 'login_ending' });
  });

  test('it stays as it is while the age of the login is unknown after a reboot', () => {
    if (notice === null) throw new Error('there is no notice');
    for (const code of ['portal_unreachable', null] as const) {
      const unknown = { ...grant, generation: 5, remaining: null };
      const facts = { ...subject, condition: code && condition(code), grant: unknown };
      expect(currentNotice({ notice, generation: 1 }, { facts, notice: null })).toBe(notice);
    }
  });

  test('it does not change the words of a notice about refreshes, which is about something else', () => {
    if (notice === null) throw new Error('there is no notice');
    const older = { ...notice, code: 'refresh_failing', message: 'Refreshes fail' } as const;
    const now = { facts: { ...subject, condition: ending }, notice };
    expect(currentNotice({ notice: older, generation: 1 }, now)).toBe(older);
  });

  test('it comes before a notice about missing permissions, whose words it does not change', () => {
    const missing = { ...ending, code: 'permissions_missing', message: 'One is missing' } as const;
    const held = subjectNotice({ ...subject, condition: missing }, null);
    if (held === null || notice === null) throw new Error('there is no notice');
    expect(held).toMatchObject({ code: 'permissions_missing', severity: 'warning', message: 'One is missing' });
    const facts = { ...subject, condition: ending };
    expect(currentNotice({ notice: held, generation: 1 }, { facts, notice })).toMatchObject({ code: 'login_ending' });
    const granted = { ...subject, condition: null, grant: { ...grant, generation: 2 } };
    expect(currentNotice({ notice: held, generation: 1 }, { facts: granted, notice: null })).toBeNull();
    expect(resolvedMessage(held, granted)).toBe('wallbox no longer lacks permissions');
  });

  test('a new login resolves it', () => {
    if (notice === null) throw new Error('there is no notice');
    const facts = { ...subject, condition: null, grant: { ...grant, generation: 2 } };
    expect(currentNotice({ notice, generation: 1 }, { facts, notice: null })).toBeNull();
    expect(resolvedMessage(notice, facts)).toBe('The login of wallbox no longer ends soon');
  });
});

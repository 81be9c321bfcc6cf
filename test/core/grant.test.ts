import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Instant } from '../../src/core/clock.ts';
import {
  type Grant,
  grantFromTokenResponse,
  hasScopeChanged,
  isFromLaterLogin,
  isFromSameLogin,
  minRemaining,
  remainingLifetime,
} from '../../src/core/grants/grant.ts';
import type { TokenResponse } from '../../src/core/portals/token-outcome.ts';
import { Secret } from '../../src/core/secret.ts';
import { DAY, HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

const TOKENS = { accessToken: new Secret('new'), refreshToken: null, scope: null, lifetime: HOUR };

/** The grant after a refresh at one hour. */
const next = (previous: Grant, changes: Partial<TokenResponse> = {}) =>
  grantFromTokenResponse(previous, previous.refreshToken, { ...TOKENS, ...changes }, instantAt(HOUR), null);

test('an access token needs 60 s left to be issued, or a tenth of its lifetime if that is less', () => {
  expect(minRemaining(sampleGrant({ lifetime: HOUR }))).toBe(MINUTE);
  expect(minRemaining(sampleGrant({ lifetime: 10 * MINUTE }))).toBe(MINUTE);
  expect(minRemaining(sampleGrant({ lifetime: 60 * SECOND }))).toBe(6 * SECOND);
});

test("an access token's age is measured on the boot clock within a boot, whatever the wall clock does", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 * HOUR }), fc.integer(), (uptime, wall) => {
      const now = { boot: 'boot-1', uptime, wall };
      expect(remainingLifetime(sampleGrant(), now, null)).toBe(Math.max(0, HOUR - uptime));
      expect(remainingLifetime(sampleGrant(), now, { wall: 0, at: instantAt(0) })).toBe(Math.max(0, HOUR - uptime));
    }),
  );
});

test("an access token's remaining lifetime is unknown after a reboot until the time is confirmed", () => {
  expect(remainingLifetime(sampleGrant(), instantAt(5 * MINUTE, 'boot-2'), null)).toBeNull();
});

test("an access token's age after a reboot follows from the portal's time now and when it issued the token", () => {
  const grant = sampleGrant();
  const confirmed = { wall: (grant.portalTime ?? 0) + 20 * MINUTE, at: instantAt(MINUTE, 'boot-2') };
  expect(remainingLifetime(grant, instantAt(MINUTE, 'boot-2'), confirmed)).toBe(40 * MINUTE - SECOND);
  expect(remainingLifetime(grant, instantAt(6 * MINUTE, 'boot-2'), confirmed)).toBe(35 * MINUTE - SECOND);
  expect(remainingLifetime(grant, instantAt(10 * HOUR, 'boot-2'), confirmed)).toBe(0);
});

test("an access token's age is unknown after a reboot without a portal time of this boot and of the token", () => {
  const confirmed = { wall: Date.UTC(2031, 4, 5, 6, 20), at: instantAt(MINUTE, 'boot-2') };
  expect(remainingLifetime(sampleGrant(), instantAt(MINUTE, 'boot-3'), confirmed)).toBeNull();
  expect(remainingLifetime(sampleGrant({ portalTime: null }), instantAt(MINUTE, 'boot-2'), confirmed)).toBeNull();
});

test("a portal time up to a minute before the token's issue makes it new, and an earlier one its age unknown", () => {
  const grant = sampleGrant();
  const confirmed = (wall: number) => ({ wall, at: instantAt(MINUTE, 'boot-2') });
  expect(remainingLifetime(grant, instantAt(MINUTE, 'boot-2'), confirmed((grant.portalTime ?? 0) - MINUTE))).toBe(
    HOUR - SECOND,
  );
  expect(
    remainingLifetime(grant, instantAt(MINUTE, 'boot-2'), confirmed((grant.portalTime ?? 0) - MINUTE - SECOND)),
  ).toBeNull();
  expect(remainingLifetime(grant, instantAt(MINUTE, 'boot-2'), confirmed(Date.UTC(2030, 0, 1)))).toBeNull();
});

test('new tokens get the next generation and clear doubt, refusal and misconfiguration', () => {
  const bad = { doubt: { lostAt: instantAt(1), sends: 2 }, refused: instantAt(2), misconfigured: instantAt(3) };
  const before = sampleGrant({ generation: 7, ...bad });
  expect(next(before, { lifetime: MINUTE })).toMatchObject({
    generation: 8,
    doubt: null,
    refused: null,
    misconfigured: null,
    lifetime: MINUTE,
    portalTime: null,
    obtained: instantAt(HOUR),
    scope: before.scope,
  });
  expect(next(before, { scope: 'Monitoring' }).scope).toBe('Monitoring');
});

test('a rejected access token has no lifetime left, and stays rejected if the portal issues the same one again', () => {
  const accessTokenRejectedAt = instantAt(MINUTE);
  const grant = sampleGrant({ accessTokenRejectedAt });
  expect(remainingLifetime(grant, instantAt(MINUTE), null)).toBe(0);
  expect(remainingLifetime(grant, instantAt(MINUTE, 'boot-2'), null)).toBe(0);
  const same = { accessToken: new Secret(grant.accessToken.reveal()) };
  expect(next(grant).accessTokenRejectedAt).toBeNull();
  expect(next(grant, same).accessTokenRejectedAt).toEqual(accessTokenRejectedAt);
  expect(next(sampleGrant(), same).accessTokenRejectedAt).toBeNull();
});

describe('what the portal reports besides the tokens', () => {
  test('a grant has only what a response of the portal has reported', () => {
    expect(next(sampleGrant())).toStrictEqual({
      ...sampleGrant({ generation: 2, accessToken: new Secret('new'), obtained: instantAt(HOUR), portalTime: null }),
    });
  });

  test('the account and the ID token stay until a response has others', () => {
    const reported = { account: 'a person', idToken: new Secret('an ID token') };
    const first = next(sampleGrant(), reported);
    expect(first).toMatchObject(reported);
    expect(next(first)).toMatchObject(reported);
    const others = { account: 'another person', idToken: new Secret('another ID token') };
    expect(next(first, others)).toMatchObject(others);
  });
});

describe('login of a grant', () => {
  const loginAt = (pairing: string, at: Instant) => ({
    login: { pairing, at, portalTime: null, refreshTokenLifetime: null },
  });
  const first = loginAt('first', instantAt(MINUTE));

  test('two grants are from the same login if the same pairing is known of both', () => {
    expect(isFromSameLogin(first, loginAt('first', instantAt(DAY, 'boot-2')))).toBe(true);
    for (const other of [loginAt('second', instantAt(MINUTE)), {}]) {
      expect(isFromSameLogin(first, other)).toBe(false);
      expect(isFromSameLogin(other, first)).toBe(false);
    }
    expect(isFromSameLogin({}, {})).toBe(false);
  });

  test.each<[string, Pick<Grant, 'login'>, boolean]>([
    ['a millisecond later', loginAt('second', instantAt(MINUTE + 1)), true],
    ['at the same time', loginAt('second', instantAt(MINUTE)), false],
    ['earlier', loginAt('second', instantAt(0)), false],
    [
      'later by the boot clock, although the wall clock was set back',
      loginAt('second', { ...instantAt(HOUR), wall: 0 }),
      true,
    ],
    ['later by the wall clock, in another boot', loginAt('second', { ...instantAt(HOUR, 'boot-2'), uptime: 0 }), true],
    [
      'earlier by the wall clock, in another boot',
      loginAt('second', { ...instantAt(0, 'boot-2'), uptime: DAY }),
      false,
    ],
    ['in the same pairing', loginAt('first', instantAt(HOUR)), false],
    ['unknown', {}, false],
  ])('a login is later than another one or not: %s', (_, login, isLater) => {
    expect(isFromLaterLogin(login, first)).toBe(isLater);
    expect(isFromLaterLogin(login, {})).toBe(false);
  });

  /** The lifetime of the refresh token that counts for the end of the login. @param gap ms since the last refresh */
  function wholeAfter(gap: number, lifetime: number | undefined, previous: Partial<Grant> = {}, boot = 'boot-1') {
    const login = { ...first.login, refreshTokenLifetime: 30 * DAY };
    const grant = sampleGrant({ login, refreshTokenLifetime: 30 * DAY, ...previous });
    const response = { ...TOKENS, ...(lifetime !== undefined && { refreshTokenLifetime: lifetime }) };
    const at = { ...instantAt(gap), boot };
    return grantFromTokenResponse(grant, null, response, at, at.wall).login?.refreshTokenLifetime;
  }

  test.each<[string, number, number | undefined, number]>([
    ['its end stays where it was', HOUR, 30 * DAY - HOUR, 30 * DAY],
    ['its end moves by half of the time between the refreshes', HOUR, 30 * DAY - HOUR / 2, 30 * DAY],
    ['its end moves by more than that', HOUR, 30 * DAY - HOUR / 2 + 1, 30 * DAY - HOUR / 2 + 1],
    ['its end comes earlier by more than that', HOUR, 30 * DAY - 2 * HOUR, 30 * DAY - 2 * HOUR],
    ['it begins anew', HOUR, 31 * DAY, 31 * DAY],
    ['it begins anew ten seconds after the last refresh', 10 * SECOND, 31 * DAY, 31 * DAY],
    ['it begins anew sooner than that, which shows nothing', 10 * SECOND - 1, 31 * DAY, 30 * DAY],
    ['the response does not name it', HOUR, undefined, 30 * DAY],
  ])('the whole lifetime of a refresh token changes only if its end is put off: %s', (_, gap, lifetime, whole) => {
    expect(wholeAfter(gap, lifetime)).toBe(whole);
  });

  test('the whole lifetime of a refresh token is the first that a response names', () => {
    const { refreshTokenLifetime: _, ...previous } = sampleGrant(first);
    const response = { ...TOKENS, refreshTokenLifetime: 7 * DAY };
    const grant = grantFromTokenResponse(previous, null, response, instantAt(SECOND), null);
    expect(grant.login).toEqual({ ...first.login, refreshTokenLifetime: 7 * DAY });
    // The first response after the login is part of it.
    const { obtained: __, ...begun } = sampleGrant({ login: { ...first.login, refreshTokenLifetime: 30 * DAY } });
    expect(grantFromTokenResponse(begun, null, response, instantAt(SECOND), null).login).toEqual(begun.login);
    const { login: ___, ...imported } = previous;
    expect(grantFromTokenResponse(imported, null, response, instantAt(HOUR), null)).not.toHaveProperty('login');
  });

  test("after a reboot the whole lifetime of a refresh token follows from the portal's clock, if that is known", () => {
    expect(wholeAfter(HOUR, 31 * DAY, {}, 'boot-2')).toBe(31 * DAY);
    expect(wholeAfter(HOUR, 30 * DAY - HOUR, {}, 'boot-2')).toBe(30 * DAY);
    expect(wholeAfter(HOUR, 31 * DAY, { portalTime: null }, 'boot-2')).toBe(30 * DAY);
  });
});

test('only the declared scope of a connection can differ from the one that was requested for its grant', () => {
  const grant = sampleGrant({ requestedScope: 'a b' });
  expect(hasScopeChanged({ origin: 'declared', scope: 'a' }, grant)).toBe(true);
  expect(hasScopeChanged({ origin: 'declared', scope: 'a b' }, grant)).toBe(false);
  expect(hasScopeChanged({ origin: 'declared', scope: 'a' }, undefined)).toBe(false);
  expect(hasScopeChanged({ origin: 'added', scope: 'a' }, grant)).toBe(false);
});

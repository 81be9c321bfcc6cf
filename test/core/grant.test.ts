import fc from 'fast-check';
import { expect, test } from 'vitest';
import { grantFromTokenResponse, minRemaining, remainingLifetime } from '../../src/core/grants/grant.ts';
import { Secret } from '../../src/core/secret.ts';
import { HOUR, instantAt, MINUTE, SECOND, sampleGrant } from './samples.ts';

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
  const tokens = { accessToken: new Secret('new'), refreshToken: null, scope: null, lifetime: MINUTE };
  const after = grantFromTokenResponse(before, before.refreshToken, tokens, instantAt(HOUR), null);
  expect(after).toMatchObject({ generation: 8, doubt: null, refused: null, misconfigured: null });
  expect(after).toMatchObject({ lifetime: MINUTE, portalTime: null });
  expect(after.obtained).toEqual(instantAt(HOUR));
  expect(after.scope).toBe(before.scope);
  expect(
    grantFromTokenResponse(before, before.refreshToken, { ...tokens, scope: 'Monitoring' }, instantAt(0), null).scope,
  ).toBe('Monitoring');
});

test('a rejected access token has no lifetime left, and stays rejected if the portal issues the same one again', () => {
  const accessTokenRejectedAt = instantAt(MINUTE);
  const grant = sampleGrant({ accessTokenRejectedAt });
  expect(remainingLifetime(grant, instantAt(MINUTE), null)).toBe(0);
  expect(remainingLifetime(grant, instantAt(MINUTE, 'boot-2'), null)).toBe(0);
  const tokens = { accessToken: new Secret('new'), refreshToken: null, scope: null, lifetime: HOUR };
  expect(
    grantFromTokenResponse(grant, grant.refreshToken, tokens, instantAt(HOUR), null).accessTokenRejectedAt,
  ).toBeNull();
  const same = { ...tokens, accessToken: new Secret(grant.accessToken.reveal()) };
  expect(grantFromTokenResponse(grant, grant.refreshToken, same, instantAt(HOUR), null).accessTokenRejectedAt).toEqual(
    accessTokenRejectedAt,
  );
  expect(
    grantFromTokenResponse(sampleGrant(), grant.refreshToken, same, instantAt(HOUR), null).accessTokenRejectedAt,
  ).toBeNull();
});

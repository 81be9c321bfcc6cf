import fc from 'fast-check';
import { expect, test } from 'vitest';
import { grantFromTokenResponse, minRemaining, remaining } from '../../src/core/grants/grant.ts';
import { Secret } from '../../src/core/secret.ts';
import { at, grantOf, HOUR, MINUTE, SECOND } from './samples.ts';

test('a token that is handed out has 60 s left, of short-lived ones a tenth of their life', () => {
  expect(minRemaining(grantOf({ lifetime: HOUR }))).toBe(MINUTE);
  expect(minRemaining(grantOf({ lifetime: 10 * MINUTE }))).toBe(MINUTE);
  expect(minRemaining(grantOf({ lifetime: 60 * SECOND }))).toBe(6 * SECOND);
});

test('within a boot the age of a token is measured on the boot clock, whatever the wall clock does', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 * HOUR }), fc.integer(), (uptime, wall) => {
      const now = { boot: 'boot-1', uptime, wall };
      expect(remaining(grantOf(), now, null)).toBe(Math.max(0, HOUR - uptime));
      expect(remaining(grantOf(), now, { wall: 0, at: at(0) })).toBe(Math.max(0, HOUR - uptime));
    }),
  );
});

test('after a boot nobody knows how long a token lives until the time is confirmed', () => {
  expect(remaining(grantOf(), at(5 * MINUTE, 'boot-2'), null)).toBeNull();
});

test('after a boot the age follows from the portal clock, now and when it gave the token', () => {
  const grant = grantOf();
  const told = { wall: (grant.portalTime ?? 0) + 20 * MINUTE, at: at(MINUTE, 'boot-2') };
  expect(remaining(grant, at(MINUTE, 'boot-2'), told)).toBe(40 * MINUTE - SECOND);
  expect(remaining(grant, at(6 * MINUTE, 'boot-2'), told)).toBe(35 * MINUTE - SECOND);
  expect(remaining(grant, at(10 * HOUR, 'boot-2'), told)).toBe(0);
});

test('a time confirmed in another boot, or tokens that came without one, leave the age unknown', () => {
  const told = { wall: Date.UTC(2031, 4, 5, 6, 20), at: at(MINUTE, 'boot-2') };
  expect(remaining(grantOf(), at(MINUTE, 'boot-3'), told)).toBeNull();
  expect(remaining(grantOf({ portalTime: null }), at(MINUTE, 'boot-2'), told)).toBeNull();
});

test('a clock that has gone back a little since a token was given makes it no older, and by more than a minute says nothing', () => {
  const grant = grantOf();
  const told = (wall: number) => ({ wall, at: at(MINUTE, 'boot-2') });
  expect(remaining(grant, at(MINUTE, 'boot-2'), told((grant.portalTime ?? 0) - MINUTE))).toBe(HOUR - SECOND);
  expect(remaining(grant, at(MINUTE, 'boot-2'), told((grant.portalTime ?? 0) - MINUTE - SECOND))).toBeNull();
  expect(remaining(grant, at(MINUTE, 'boot-2'), told(Date.UTC(2030, 0, 1)))).toBeNull();
});

test('a successor takes the next generation, and nothing that was wrong with the one before goes over to it', () => {
  const bad = { doubt: { lostAt: at(1), sends: 2 }, refused: at(2), misconfigured: at(3) };
  const before = grantOf({ generation: 7, ...bad });
  const tokens = { accessToken: new Secret('new'), refreshToken: null, scope: null, lifetime: MINUTE };
  const after = grantFromTokenResponse(before, before.refreshToken, tokens, at(HOUR), null);
  expect(after).toMatchObject({ generation: 8, doubt: null, refused: null, misconfigured: null });
  expect(after).toMatchObject({ lifetime: MINUTE, portalTime: null });
  expect(after.obtained).toEqual(at(HOUR));
  expect(after.scope).toBe(before.scope);
  expect(
    grantFromTokenResponse(before, before.refreshToken, { ...tokens, scope: 'Monitoring' }, at(0), null).scope,
  ).toBe('Monitoring');
});

test('of a token that the cloud refused nothing is left, and the very same one is no better for being new', () => {
  const distrusted = at(MINUTE);
  const grant = grantOf({ distrusted });
  expect(remaining(grant, at(MINUTE), null)).toBe(0);
  expect(remaining(grant, at(MINUTE, 'boot-2'), null)).toBe(0);
  const tokens = { accessToken: new Secret('new'), refreshToken: null, scope: null, lifetime: HOUR };
  expect(grantFromTokenResponse(grant, grant.refreshToken, tokens, at(HOUR), null).distrusted).toBeNull();
  const same = { ...tokens, accessToken: new Secret(grant.accessToken.reveal()) };
  expect(grantFromTokenResponse(grant, grant.refreshToken, same, at(HOUR), null).distrusted).toEqual(distrusted);
  expect(grantFromTokenResponse(grantOf(), grant.refreshToken, same, at(HOUR), null).distrusted).toBeNull();
});

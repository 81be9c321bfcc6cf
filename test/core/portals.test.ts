import { describe, expect, test } from 'vitest';
import {
  type ConfiguredPortal,
  clientIdApplyMethod,
  isIssuerOfAnother,
  isSameIssuer,
  portalIdentityOf,
} from '../../src/core/portals/identity.ts';
import { isFromIssuer, type LoginLink, type RedirectLink, typedUserCode } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';
import { instantAt, MINUTE, SAMPLE_LINK } from './samples.ts';

describe('issuer of a grant', () => {
  const issuer = { origin: 'https://old.example', clientId: 'Hub', name: 'home' };
  const portal = (changes: Partial<ConfiguredPortal> = {}): ConfiguredPortal => ({
    ...issuer,
    otherOrigins: [],
    ...changes,
  });

  test.each<[string, Partial<ConfiguredPortal>, boolean]>([
    ['the same', {}, true],
    ['the same with another name', { name: 'other' }, true],
    ['the same with its client_id in other letters', { clientId: 'hUB' }, true],
    ['another client', { clientId: 'another' }, false],
    ['another client at a new origin', { clientId: 'another', origin: 'https://new.example' }, false],
    ['one that has moved to a new origin', { origin: 'https://new.example' }, true],
    ['one at another origin, with another name', { origin: 'https://new.example', name: 'other' }, false],
    [
      'one with its name, while another portal has its origin',
      { origin: 'https://new.example', otherOrigins: ['https://old.example'] },
      false,
    ],
    ['the same, while another portal has its origin, too', { otherOrigins: ['https://old.example'] }, true],
  ])('a grant is used at the portal that issued it, and at no other: %s', (_, changes, isSame) => {
    expect(isSameIssuer(issuer, portal(changes))).toBe(isSame);
  });

  test.each<[string, Partial<ConfiguredPortal>, boolean]>([
    ['of no other portal', {}, false],
    ['of another portal', { otherOrigins: ['https://other.example/realms/a'] }, true],
    ['at the origin of the token endpoint of another portal', { otherOrigins: ['https://other.example/token'] }, true],
    [
      'at an origin that both have',
      { origin: 'https://other.example/b', otherOrigins: ['https://other.example/token'] },
      false,
    ],
    [
      'of the portal, and of another one with its own client',
      { origin: 'https://other.example/realms/a', otherOrigins: ['https://other.example/realms/a'] },
      false,
    ],
    [
      "above the portal's token endpoint, and of another one with its own client",
      { origin: 'https://other.example/realms/a/token', otherOrigins: ['https://other.example/realms/a'] },
      false,
    ],
    ['at no origin, of a portal without a URL', { otherOrigins: [''] }, false],
  ])('an issuer identifier %s is told from that of the portal itself', (_, changes, isOther) => {
    expect(isIssuerOfAnother('https://other.example/realms/a', portal(changes))).toBe(isOther);
  });

  test('the identity that is stored with a grant does not name the other portals', () => {
    expect(portalIdentityOf(portal({ otherOrigins: ['https://other.example'] }))).toEqual(issuer);
  });

  test('a corrected client_id takes effect by a reload, unless Home Assistant writes it', () => {
    expect(
      ([undefined, 'reload', 'service_restart', 'new_start', 'app_restart'] as const).map((appliedBy) =>
        clientIdApplyMethod(appliedBy === undefined ? {} : { appliedBy }),
      ),
    ).toEqual(['reload', 'reload', 'reload', 'reload', 'app_restart']);
  });
});

describe('link to log in', () => {
  const redirect = (issuer: string | null, requiresIssuer: boolean): RedirectLink => ({
    kind: 'redirect',
    authorizeUrl: 'https://portal.example/authorize',
    redirect: 'https://hub.example/callback',
    state: 'the-state',
    verifier: null,
    issuer,
    requiresIssuer,
  });
  const known = 'https://portal.example';

  test.each<[string, string | null, boolean, string | null, boolean]>([
    ['the known issuer', known, true, known, true],
    ['another issuer', known, false, 'https://other.example', false],
    ['no issuer, although every response has one', known, true, null, false],
    ['no issuer, at a portal that sends none', known, false, null, true],
    ['an issuer, although none is known', null, false, 'https://other.example', true],
  ])('a response with %s counts as one of the portal, or not', (_, issuer, requiresIssuer, response, counts) => {
    expect(isFromIssuer(redirect(issuer, requiresIssuer), response)).toBe(counts);
  });

  test('a person types a code only at the link of a device flow that does not contain it', () => {
    const device = (containsUserCode: boolean): LoginLink => ({
      kind: 'device',
      authorizeUrl: 'https://portal.example/device',
      redirect: null,
      userCode: 'WDJB-MJHT',
      containsUserCode,
      deviceCode: new Secret('a device code'),
      verifier: null,
      interval: 5000,
      begun: instantAt(0),
      lifetime: 10 * MINUTE,
    });
    expect(typedUserCode(device(false))).toBe('WDJB-MJHT');
    for (const link of [device(true), SAMPLE_LINK, redirect(null, false)]) expect(typedUserCode(link)).toBeNull();
  });
});

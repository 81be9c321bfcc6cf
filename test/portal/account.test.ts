import { expect, test } from 'vitest';
import { accountFromTokens } from '../../src/portal/token-response.ts';
import { parseTokenResponse } from './token-bodies.ts';

function jwt(claims: unknown): string {
  const encoded = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encoded({ alg: 'none' })}.${encoded(claims)}.c2lnbmF0dXJl`;
}

test.each<[string, Record<string, unknown>, string | null]>([
  [
    'the user name takes precedence',
    { sub: '1', name: 'Anna', email: 'a@b.example', preferred_username: 'anna' },
    'anna',
  ],
  ['the e-mail address comes next', { sub: '1', name: 'Anna', email: 'a@b.example' }, 'a@b.example'],
  ['the name comes before the subject', { sub: '1', name: 'Änne Öztürk' }, 'Änne Öztürk'],
  ['other claims are ignored', { jti: 'a-secret', access_token: 'a-secret', client: 'hub' }, null],
  ['claims that are not text are ignored', { preferred_username: 7, email: ['x'], name: { x: 1 }, sub: null }, null],
  ['an empty claim is skipped', { preferred_username: ' ', email: '', name: 'Anna' }, 'Anna'],
  [
    'claims with control characters are ignored',
    { preferred_username: '\u001b[2Jroot', email: 'a\nb', name: 'a\u202eb', sub: 'a\u2028b' },
    null,
  ],
  [
    'a claim that is too long is skipped',
    { preferred_username: 'x'.repeat(129), sub: 'y'.repeat(128) },
    'y'.repeat(128),
  ],
])('the account is taken from the claims of an access token: %s', (_, claims, account) => {
  expect(accountFromTokens(jwt(claims))).toBe(account);
});

test("the ID token's account takes precedence over the access token's, and a text that is no JWT has none", () => {
  expect(accountFromTokens(jwt({ name: 'Anna' }), jwt({ sub: 'u-17' }))).toBe('Anna');
  expect(accountFromTokens(undefined, jwt({ sub: 'u-17' }))).toBe('u-17');
  expect(accountFromTokens(jwt({ jti: 'x' }), jwt({ sub: 'u-17' }))).toBe('u-17');
  for (const odd of ['', 'a.b', 'a.b.c', `${jwt({ sub: 'x' })}.more`, jwt(null), jwt('sub'), 7])
    expect(accountFromTokens(odd), String(odd)).toBeNull();
});

test('a token response includes the account, if a token names it', () => {
  const tokens = { access_token: 'a', refresh_token: 'b', expires_in: 60 };
  expect(parseTokenResponse(JSON.stringify({ ...tokens, id_token: jwt({ sub: 'u-17' }) }))?.account).toBe('u-17');
  expect(parseTokenResponse(JSON.stringify({ ...tokens, access_token: jwt({ email: 'a@b.example' }) }))?.account).toBe(
    'a@b.example',
  );
  expect(parseTokenResponse(JSON.stringify({ ...tokens, id_token: 'opaque' }))).not.toHaveProperty('account');
});

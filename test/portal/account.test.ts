import { expect, test } from 'vitest';
import { accountFromTokens } from '../../src/portal/account.ts';
import { parseTokenResponse } from '../../src/portal/wire.ts';

function jwt(claims: unknown): string {
  const encoded = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encoded({ alg: 'none' })}.${encoded(claims)}.c2lnbmF0dXJl`;
}

test.each<[string, Record<string, unknown>, string | null]>([
  [
    'the user name, before all others',
    { sub: '1', name: 'Anna', email: 'a@b.example', preferred_username: 'anna' },
    'anna',
  ],
  ['the e-mail address', { sub: '1', name: 'Anna', email: 'a@b.example' }, 'a@b.example'],
  ['the name', { sub: '1', name: 'Änne Öztürk' }, 'Änne Öztürk'],
  ['the subject, where there is nothing else', { sub: 'u-17' }, 'u-17'],
  ['no claim of another name', { jti: 'a-secret', access_token: 'a-secret', client: 'hub' }, null],
  ['nothing that is no text', { preferred_username: 7, email: ['x'], name: { x: 1 }, sub: null }, null],
  ['nothing empty, but what comes after it', { preferred_username: ' ', email: '', name: 'Anna' }, 'Anna'],
  [
    'nothing with control characters',
    { preferred_username: '\u001b[2Jroot', email: 'a\nb', name: 'a\u202eb', sub: 'a\u2028b' },
    null,
  ],
  ['nothing that is too long', { preferred_username: 'x'.repeat(129), sub: 'y'.repeat(128) }, 'y'.repeat(128)],
])('tells %s', (_, claims, account) => {
  expect(accountFromTokens(jwt(claims))).toBe(account);
});

test('an ID token counts before the access token, and what is no JWT tells nothing', () => {
  expect(accountFromTokens(jwt({ name: 'Anna' }), jwt({ sub: 'u-17' }))).toBe('Anna');
  expect(accountFromTokens(undefined, jwt({ sub: 'u-17' }))).toBe('u-17');
  expect(accountFromTokens(jwt({ jti: 'x' }), jwt({ sub: 'u-17' }))).toBe('u-17');
  for (const odd of [
    '',
    'opaque',
    'a.b',
    'a.b.c',
    '.e30.',
    `${jwt({ sub: 'x' })}.more`,
    jwt(null),
    jwt([]),
    jwt('sub'),
    7,
    null,
  ])
    expect(accountFromTokens(odd), String(odd)).toBeNull();
});

test('a token response tells of it, and one with an odd ID token is taken all the same', () => {
  const tokens = { access_token: 'a', refresh_token: 'b', expires_in: 60 };
  expect(parseTokenResponse(JSON.stringify({ ...tokens, id_token: jwt({ sub: 'u-17' }) }))?.account).toBe('u-17');
  expect(parseTokenResponse(JSON.stringify({ ...tokens, access_token: jwt({ email: 'a@b.example' }) }))?.account).toBe(
    'a@b.example',
  );
  for (const id_token of [7, null, {}, 'opaque', 'x'.repeat(100_000)]) {
    const parsed = parseTokenResponse(JSON.stringify({ ...tokens, id_token }));
    expect(parsed?.accessToken.reveal()).toBe('a');
    expect(parsed).not.toHaveProperty('account');
  }
});

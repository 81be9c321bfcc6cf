import { expect, test } from 'vitest';
import { mintRefreshToken, requestToken } from '../../../src/emulator/exam/setup.ts';
import { startEmulator } from '../../../src/emulator/index.ts';
import { clientWith, examine, namesOf } from './run-exam.ts';

test('a client that is right passes a situation, and its report says what was seen, what is right and who says so', async () => {
  const report = await examine(clientWith(), 'access-token-refused-early');
  expect(report).toMatchObject({ passed: 1, failed: 0, not_applicable: 0 });
  expect(report.results).toEqual([
    {
      name: 'access-token-refused-early',
      group: 'ends',
      verdict: 'passed',
      seen: 'a call with status 401, one refresh, and calls with the new access token',
      right: expect.stringMatching(/\w/),
      source: expect.stringMatching(/^RFC 6750, 3\.1: /),
    },
  ]);
});

test('a client with a mistake fails the situation that is about it, and passes its neighbours', async () => {
  const report = await examine(clientWith('two-methods'), 'one-method', 'only-basic', 'only-post');
  expect(namesOf(report, 'failed')).toEqual(['one-method']);
  expect(report.results[0]?.seen).toBe('one request has client_secret_basic and client_secret_post');
  expect(namesOf(report, 'passed')).toEqual(['only-basic', 'only-post']);
});

test.each([
  [
    'no-secret-for-device-codes',
    'device-flow',
    'the device authorization request was refused: invalid_client, no secret',
  ],
  ['no-secret-for-codes', 'code-flow', 'the token request was refused: invalid_client, no secret was sent'],
  ['asks-for-a-fragment', 'code-flow', 'the authorization request was refused: invalid_request, response_mode must be'],
])('the mistake %s, which no login survives, is one failure', async (mistake, group, seen) => {
  const report = await examine(clientWith(mistake), group);
  expect(report.failed).toBe(1);
  expect(report.results[0]).toMatchObject({ verdict: 'failed', seen: expect.stringContaining(seen) });
  // A login that begins with a refresh token remains.
  expect(report.results.length - report.not_applicable).toBe(1);
});

test('a client that checks its credentials during a refused login is not blamed for that', async () => {
  const report = await examine(clientWith('checks-its-credentials'), 'login-refused');
  expect(namesOf(report, 'passed')).toEqual(['login-refused']);
});

test('a client that ignores the state is blamed if it has neither PKCE nor the nonce of OpenID Connect', async () => {
  const states = ['state-of-another', 'state-missing'];
  const [blamed, withPkce, withNonce] = await Promise.all([
    examine(clientWith('no-state-check', 'no-pkce'), ...states, 'pkce'),
    examine(clientWith('no-state-check'), ...states, 'pkce'),
    examine(clientWith('no-state-check', 'no-pkce', 'requests-openid'), ...states, 'pkce'),
  ]);
  expect(namesOf(blamed, 'failed')).toEqual(['pkce', ...states]);
  expect(blamed.results.map(({ seen }) => seen)).toEqual([
    'the authorization URL has no code_challenge',
    'the client took a code with a state that is not its own',
    'the client took a code without a state',
  ]);
  expect(namesOf(withPkce, 'passed')).toEqual(['pkce']);
  expect(namesOf(withPkce, 'not_applicable')).toEqual(states);
  expect(namesOf(withNonce, 'not_applicable')).toEqual(['pkce', ...states]);
});

test('a client that sends nothing of what a situation compares does not pass it', async () => {
  const report = await examine(
    clientWith('no-state', 'no-pkce', 'no-redirect'),
    'exact-redirect',
    'pkce',
    'new-values-for-each-login',
  );
  expect(report.results.map(({ verdict, seen }) => [verdict, seen])).toEqual([
    ['not_applicable', 'the client sends no redirect_uri'],
    ['failed', 'the authorization URL has no code_challenge'],
    ['not_applicable', 'the client sends neither a state nor a code_challenge: see the situation "pkce"'],
  ]);
});

test('a client may name scopes of OpenID Connect when it refreshes the token that it begins with', async () => {
  const redirectUri = 'http://127.0.0.1:1/callback';
  await using emulator = await startEmulator({ clients: [{ id: 'a-client', redirectUris: [redirectUri] }] });
  const form = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: 'a-client',
    refresh_token: await mintRefreshToken(emulator, redirectUri),
    scope: 'openid offline_access',
  });
  expect(JSON.parse(await requestToken(emulator, form))).toHaveProperty('access_token');
});

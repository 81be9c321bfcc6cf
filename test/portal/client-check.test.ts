import { exportJWK, generateKeyPair } from 'jose';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { systemClock } from '../../src/system/clock.ts';
import { httpResponse, startRawServer } from '../support/raw-server.ts';
import { CLIENT_JWK, connectOAuth2Portal } from './oauth2/oauth2-portal-harness.ts';

const OTHER_JWK = { ...(await exportJWK((await generateKeyPair('ES256')).publicKey)), kid: 'the-key', alg: 'ES256' };
const SECRET = 'the-right-secret';

/** The answer to a request with this grant_type; `isRight`: with the secret that the portal knows. */
type Behaviour = (grant: 'authorization_code' | 'refresh_token', isRight: boolean) => readonly [number, string];

const error = (status: number, code: string) => [status, JSON.stringify({ error: code })] as const;
const INVALID_GRANT = error(400, 'invalid_grant');
const INVALID_CLIENT = error(401, 'invalid_client');
const clientFirst: Behaviour = (_, isRight) => (isRight ? INVALID_GRANT : INVALID_CLIENT);

const kinds = {
  async helper(origin: string, secret: string) {
    await using portal = new HelperPortal({
      baseUrl: origin,
      frontendUrl: origin,
      clientId: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01',
      clientSecret: new Secret(secret),
      credentialLocation: { portal: 'cloud' },
      ca: [],
    });
    return portal.check(() => systemClock('').now().wall);
  },
  async oauth2(origin: string, secret: string) {
    const endpoints = {
      authorization: `${origin}/a`,
      token: `${origin}/t`,
      deviceAuthorization: null,
      revocation: null,
    };
    await using portal = connectOAuth2Portal(
      { frontendUrl: origin, clientSecret: secret },
      { issuer: null, endpoints, clientAuth: 'post', login: 'redirect' },
    );
    return portal.check(() => systemClock('').now().wall);
  },
};

describe.each(Object.entries(kinds))('a check of the client at a portal of the kind %s', (_, check) => {
  /** The check of the hub as the client with this secret. */
  async function clientAt(behaviour: Behaviour, secret = SECRET) {
    await using server = await startRawServer((socket, { body }) => {
      const form = new URLSearchParams(body);
      const grant = form.get('grant_type') === 'refresh_token' ? 'refresh_token' : 'authorization_code';
      socket.end(httpResponse(...behaviour(grant, form.get('client_secret') === SECRET)));
    });
    const found = (await check(server.origin, secret)).find(({ name }) => name === 'client');
    return found ?? expect.fail('the client was not checked');
  }

  test('a portal that looks at the client first accepts the right secret and refuses a wrong one', async () => {
    expect(await clientAt(clientFirst)).toMatchObject({
      result: 'ok',
      detail: expect.stringContaining('HTTP 400 invalid_grant, and HTTP 401 invalid_client for a wrong client'),
    });
    expect(await clientAt(clientFirst, 'wrong')).toMatchObject({ result: 'fail' });
  });

  test.each<[string, Behaviour, result: string, withWrongSecret: string, detail: RegExp]>([
    [
      'looks at a refresh token before the client',
      (grant, isRight) => (grant === 'refresh_token' ? INVALID_GRANT : clientFirst(grant, isRight)),
      ...(['ok', 'fail', /invalid_client for a wrong client/] as const),
    ],
    [
      'refuses a made-up refresh token with 401 and a code of its own',
      (grant, isRight) => (grant === 'refresh_token' ? error(401, 'invalid_token') : clientFirst(grant, isRight)),
      ...(['ok', 'fail', /invalid_client for a wrong client/] as const),
    ],
    [
      'refuses a wrong client with a bare 401',
      (_grant, isRight) => (isRight ? INVALID_GRANT : [401, '']),
      ...(['ok', 'warn', /and HTTP 401 for a wrong client/] as const),
    ],
    [
      'looks at codes and tokens before the client',
      () => INVALID_GRANT,
      'warn',
      'warn',
      /wrong client in the same way/,
    ],
    ['refuses both with 401', () => error(401, 'invalid_token'), 'warn', 'warn', /same way \(HTTP 401 invalid_token\)/],
    ['refuses everything with a bare 401', () => [401, ''], 'warn', 'warn', /the client secret may be wrong/],
    ['is behind a firewall', () => [403, '<html>'], 'warn', 'warn', /something before the portal refuses the hub/],
    ['asks to wait', () => [429, ''], 'warn', 'warn', /asked to wait/],
    ['has a problem', () => [500, ''], 'warn', 'warn', /has a problem/],
  ])('a portal that %s: what is known is said, and nothing else', async (_name, behaviour, right, wrong, detail) => {
    expect(await clientAt(behaviour)).toMatchObject({ result: right, detail: expect.stringMatching(detail) });
    expect(await clientAt(behaviour, 'wrong')).toMatchObject({ result: wrong });
  });

  test('a limit of requests that begins between two of them tells nothing', async () => {
    let requests = 0;
    const limited: Behaviour = () => {
      requests += 1;
      return requests > 2 ? [403, '<html>'] : INVALID_GRANT;
    };
    expect(await clientAt(limited)).toMatchObject({ result: 'warn' });
  });
});

test.each<[string, NonNullable<EmulatorOptions['clients']>, 'private_key_jwt' | 'none', string]>([
  ['a key', [{ id: 'latchkey', jwks: { keys: [CLIENT_JWK] } }], 'private_key_jwt', 'ok'],
  ['another key', [{ id: 'latchkey', jwks: { keys: [OTHER_JWK] } }], 'private_key_jwt', 'fail'],
  ['no secret', [{ id: 'latchkey' }], 'none', 'ok'],
])('a client with %s is told apart from a wrong one', async (_, clients, authentication, result) => {
  await using emulator = await startEmulator({ clients });
  await using portal = connectOAuth2Portal(
    emulator,
    authentication === 'none' ? { clientSecret: null } : { authentication: 'private_key_jwt' },
  );
  const checks = await portal.check(() => systemClock('').now().wall);
  expect(checks.find(({ name }) => name === 'client')).toMatchObject({ result });
});

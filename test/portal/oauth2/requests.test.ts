import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CloudProtocol } from '../../../src/clouds/cloud.ts';
import type { RedirectLink } from '../../../src/core/portals/login-link.ts';
import { Secret } from '../../../src/core/secret.ts';
import type { OAuth2Settings } from '../../../src/portal/oauth2/settings.ts';
import { httpResponse, type RawRequest, type RawServer, startRawServer } from '../../support/raw-server.ts';
import { connectOAuth2Portal } from './oauth2-portal-harness.ts';

const TOKENS = JSON.stringify({ access_token: 'aaaaaa', refresh_token: 'rrrrrr', expires_in: 3600 });
const DEVICE = JSON.stringify({
  device_code: 'the-device-code',
  user_code: 'ABCD-EFGH',
  interval: 5,
  expires_in: 300,
  verification_uri: 'https://cloud.example/device',
});
const GRANT = { refreshToken: new Secret('the-refresh-token'), accessToken: new Secret('the-access-token') };
const LINK: RedirectLink = {
  kind: 'redirect',
  authorizeUrl: 'https://cloud.example/authorize',
  redirect: 'http://192.168.1.7:8480/callback',
  state: 'the-state',
  verifier: new Secret('v'.repeat(43)),
  issuer: null,
  requiresIssuer: false,
};

let server: RawServer;
beforeEach(async () => {
  server = await startRawServer((socket, { target }) =>
    socket.end(httpResponse(200, target.startsWith('/device') ? DEVICE : TOKENS)),
  );
});
afterEach(() => server[Symbol.asyncDispose]());

/** A portal whose endpoints are all at the server. */
function portalWith(changes: Partial<OAuth2Settings> = {}) {
  const { origin } = server;
  return connectOAuth2Portal(
    { frontendUrl: origin, clientSecret: 's3cret:with +%&ü' },
    {
      issuer: null,
      endpoints: {
        authorization: `${origin}/authorize?tenant=a`,
        token: `${origin}/token?v=2`,
        deviceAuthorization: `${origin}/device`,
        revocation: `${origin}/revoke`,
      },
      ...changes,
    },
  );
}

function protocolOf(operation: string, shape: object): { protocol: CloudProtocol } {
  return { protocol: { operations: { [operation]: shape } } };
}

/** The last request, with its form decoded. */
function lastRequest() {
  const request = server.requests.at(-1);
  if (request === undefined) throw new Error('there was no request');
  return { ...request, form: Object.fromEntries(new URLSearchParams(request.body)) };
}

function basicOf({ headers }: RawRequest): string {
  return Buffer.from((headers['authorization'] ?? '').replace('Basic ', ''), 'base64').toString();
}

test('a refresh goes to the token endpoint as a form, with Basic authentication by default', async () => {
  await using portal = portalWith();
  expect(await portal.refresh(GRANT.refreshToken)).toMatchObject({ kind: 'granted' });
  const request = lastRequest();
  expect(`${request.method} ${request.target}`).toBe('POST /token?v=2');
  expect(request.form).toEqual({ grant_type: 'refresh_token', refresh_token: 'the-refresh-token' });
  expect(request.headers).toMatchObject({ 'content-type': 'application/x-www-form-urlencoded' });
  expect(basicOf(request)).toBe('latchkey:s3cret%3Awith+%2B%25%26%C3%BC');
});

describe('the outcome of a refresh', () => {
  test('the outcome is not_sent if no connection was made, and ambiguous if one broke before the whole answer', async () => {
    const broken = [
      (socket: Socket) => socket.destroy(),
      (socket: Socket) => socket.end(),
      (socket: Socket) => socket.end(httpResponse(200, TOKENS).slice(0, -10)),
    ];
    for (const respond of broken) {
      await using cut = await startRawServer(respond);
      await using portal = portalWith({
        endpoints: { authorization: null, token: cut.origin, deviceAuthorization: null, revocation: null },
      });
      expect(await portal.refresh(GRANT.refreshToken)).toMatchObject({ kind: 'ambiguous' });
      expect(cut.requests).toHaveLength(1);
      await cut[Symbol.asyncDispose]();
      expect(await portal.refresh(GRANT.refreshToken)).toMatchObject({ kind: 'not_sent' });
    }
  });
});

describe('client authentication', () => {
  test('client authentication by post sends the client and its secret in the form', async () => {
    await using portal = portalWith({ clientAuth: 'post' });
    await portal.refresh(GRANT.refreshToken);
    expect(lastRequest().form).toMatchObject({ client_id: 'latchkey', client_secret: 's3cret:with +%&ü' });
    expect(lastRequest().headers).not.toHaveProperty('authorization');
  });

  test.each(['post', 'none', null] as const)(
    'client authentication by %s without a secret sends only the client_id',
    async (clientAuth) => {
      await using portal = portalWith({ clientAuth, clientSecret: null });
      await portal.refresh(GRANT.refreshToken);
      expect(lastRequest().form).toMatchObject({ client_id: 'latchkey' });
      expect(lastRequest().form).not.toHaveProperty('client_secret');
      expect(lastRequest().headers).not.toHaveProperty('authorization');
    },
  );
});

describe('what a preset changes', () => {
  test('a preset can have parameters of one operation', async () => {
    await using portal = portalWith({
      ...protocolOf('code', { params: { action: 'requesttoken' } }),
      tokenParams: { audience: 'https://api.cloud.example' },
      headers: { 'X-Api-Key': new Secret('the-key') },
    });
    await portal.exchangeCode(LINK, { code: new Secret('the-code'), issuer: null });
    expect(lastRequest().form).toEqual({
      grant_type: 'authorization_code',
      code: 'the-code',
      redirect_uri: LINK.redirect,
      code_verifier: 'v'.repeat(43),
      action: 'requesttoken',
      audience: 'https://api.cloud.example',
    });
    expect(lastRequest().headers).toMatchObject({ 'x-api-key': 'the-key' });
    await portal.refresh(GRANT.refreshToken);
    expect(lastRequest().form).not.toHaveProperty('action');
    await portal.revoke(GRANT);
    expect(JSON.stringify(lastRequest())).not.toMatch(/the-key|audience/);
  });
});

describe('an authorization request', () => {
  async function parametersOf(changes: Partial<OAuth2Settings>, scope: string | null = 'a b') {
    await using portal = portalWith({ login: 'redirect', ...changes });
    const outcome = await portal.requestLink({ nonce: 'n', scope });
    if (outcome.kind !== 'link') throw new Error(JSON.stringify(outcome));
    return Object.fromEntries(new URL(outcome.link.authorizeUrl).searchParams);
  }

  test('an authorization request has a random state of 128 bits, PKCE, and the added parameters', async () => {
    const parameters = await parametersOf({ authorizationParams: { access_type: 'offline' }, scopeSeparator: ',' });
    expect(parameters).toEqual({
      tenant: 'a',
      response_type: 'code',
      client_id: 'latchkey',
      scope: 'a,b',
      access_type: 'offline',
      redirect_uri: 'http://192.168.1.7:8480/callback',
      code_challenge_method: 'S256',
      state: expect.stringMatching(/^[\w-]{22}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(server.requests).toHaveLength(0);
  });

  test('an authorization request has no PKCE if that is switched off, and no scope if there is none', async () => {
    const parameters = await parametersOf({ pkce: false }, null);
    expect(parameters).not.toHaveProperty('code_challenge');
    expect(parameters).not.toHaveProperty('scope');
  });

  test('an authorization request names the hub in the state for a relay, and only for a relay', async () => {
    const relayed = await parametersOf({ redirectUri: 'https://you.example/relay.html' });
    const [, hub = ''] = (relayed['state'] ?? '').split('.');
    expect(Buffer.from(hub, 'base64url').toString()).toBe('http://192.168.1.7:8480/callback');
    expect((await parametersOf({ redirectUri: 'http://localhost/' }))['state']).not.toContain('.');
    expect((await parametersOf({ redirectUri: 'com.vendor.app://login' }))['redirect_uri']).toBe(
      'com.vendor.app://login',
    );
  });
});

test('a device code in a form, in place of JSON, is read', async () => {
  const form = String(new URLSearchParams(JSON.parse(DEVICE)));
  await using answering = await startRawServer((socket) => socket.end(httpResponse(200, form)));
  const { origin } = answering;
  const endpoints = { authorization: null, token: origin, deviceAuthorization: origin, revocation: null };
  await using portal = portalWith({ endpoints });
  expect(await portal.requestLink({ nonce: 'n', scope: null })).toMatchObject({
    link: { kind: 'device', userCode: 'ABCD-EFGH', authorizeUrl: 'https://cloud.example/device', lifetime: 300_000 },
  });
});

describe('a device authorization request that is refused with invalid_client', () => {
  test.each([
    ['a client with a secret is misconfigured: the secret may be wrong', {}, { kind: 'misconfigured' }],
    ['a public client is unknown', { clientSecret: null }, { kind: 'rejected', clientUnknown: true }],
    [
      'a code that the configuration maps to this one is shown as it is',
      { errorCodes: { wrong_app: 'invalid_client' } },
      { kind: 'misconfigured', detail: expect.stringMatching(/HTTP 401 wrong_app$/) },
    ],
  ])('%s', async (_, changes: Partial<OAuth2Settings>, expected) => {
    const [error] = Object.keys(changes.errorCodes ?? { invalid_client: '' });
    await using refusing = await startRawServer((socket) => socket.end(httpResponse(401, JSON.stringify({ error }))));
    const endpoints = {
      authorization: null,
      token: `${refusing.origin}/token`,
      revocation: null,
      deviceAuthorization: `${refusing.origin}/device`,
    };
    await using portal = portalWith({ ...changes, endpoints });
    expect(await portal.requestLink({ nonce: 'n', scope: null })).toMatchObject(expected);
  });
});

test.each<[string, Partial<OAuth2Settings>, boolean]>([
  ['Basic and a secret that is encoded', { clientAuth: 'basic' }, true],
  ['Basic and a secret that is not', { clientAuth: 'basic', clientSecret: new Secret('plain-secret_1.2') }, false],
  ['the form', { clientAuth: 'post' }, false],
])(
  'a client with %s that is refused is told to try client_auth = "post" only if that may help',
  async (_, changes, helps) => {
    await using refusing = await startRawServer((socket) =>
      socket.end(httpResponse(401, '{"error":"invalid_client"}')),
    );
    const { origin } = refusing;
    const endpoints = {
      authorization: null,
      token: `${origin}/t`,
      deviceAuthorization: `${origin}/d`,
      revocation: null,
    };
    await using portal = portalWith({ ...changes, endpoints });
    const code = { code: new Secret('the-code'), issuer: null };
    for (const outcome of [await portal.refresh(GRANT.refreshToken), await portal.exchangeCode(LINK, code)]) {
      expect(outcome).toMatchObject({
        kind: 'misconfigured',
        detail: expect.stringContaining('portals.cloud.client_id'),
      });
      const detail = 'detail' in outcome ? outcome.detail : '';
      expect(detail.includes('set portals.cloud.client_auth = "post"')).toBe(helps);
    }
  },
);

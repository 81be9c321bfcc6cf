import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from 'jose';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../../src/emulator/index.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { ALICE, errorOf, get, post, requestEmulatorApi, whoami } from '../portal-client.ts';

const REDIRECT_URI = 'https://tool.example/back';
const TOOL = { id: 'tool', secret: 'tool:secret with +%&', redirectUris: [REDIRECT_URI] };
const SUBJECT = { ...ALICE, claims: { email: 'alice@example.com', roles: ['owner'] } };

/** An emulator, and unmodified openid-client that has discovered it as an OpenID provider. */
async function startProvider(options: EmulatorOptions = {}) {
  const emulator = await startEmulator({ clients: [TOOL], users: [SUBJECT], ...options });
  const insecure = { execute: [client.allowInsecureRequests] };
  const issuer = new URL(emulator.frontendUrl);
  const config = await client.discovery(issuer, TOOL.id, TOOL.secret, undefined, insecure);
  return {
    emulator,
    config,
    /** The whole code flow with PKCE and nonce. */
    async logIn(scope = 'openid profile email') {
      const pkceCodeVerifier = client.randomPKCECodeVerifier();
      const expectedNonce = client.randomNonce();
      const authorizeUrl = client.buildAuthorizationUrl(config, {
        ...{ redirect_uri: REDIRECT_URI, scope, nonce: expectedNonce, max_age: '3600' },
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
      }).href;
      const { location } = await emulator.login({ authorizeUrl, user: ALICE.name });
      const checks = { pkceCodeVerifier, expectedNonce, maxAge: 3600 };
      return client.authorizationCodeGrant(config, new URL(location), checks);
    },
    [Symbol.asyncDispose]: () => emulator.close(),
  };
}

test('a stock OpenID client checks nonce, at_hash and auth_time, and gets the claims of the user', async () => {
  await using provider = await startProvider();
  const { config } = provider;
  const tokens = await provider.logIn();
  const about = { sub: 'alice', preferred_username: 'alice', ...SUBJECT.claims };
  const at_hash = createHash('sha256').update(tokens.access_token).digest().subarray(0, 16).toString('base64url');
  expect(tokens.claims()).toMatchObject({ ...about, aud: TOOL.id, azp: TOOL.id, at_hash });
  expect(await client.fetchUserInfo(config, tokens.access_token, 'alice')).toMatchObject(about);
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '');
  expect(refreshed.claims()).toMatchObject({ auth_time: tokens.claims()?.auth_time });
  expect(refreshed.claims()).not.toHaveProperty('nonce');
});

test('claims about a user come with their scope only, and claims of the user that no scope names with each', async () => {
  await using provider = await startProvider();
  const { config } = provider;
  for (const [scope, about] of [
    ['openid', { roles: ['owner'] }],
    ['openid email', { roles: ['owner'], email: 'alice@example.com' }],
    ['openid profile', { roles: ['owner'], name: 'alice', preferred_username: 'alice' }],
  ] as const) {
    const tokens = await provider.logIn(scope);
    expect(await client.fetchUserInfo(config, tokens.access_token, 'alice')).toEqual({ sub: 'alice', ...about });
    const { email, name, preferred_username, roles } = { ...tokens.claims() };
    expect(JSON.parse(JSON.stringify({ email, name, preferred_username, roles })), scope).toEqual(about);
  }
});

test.for(['iss', 'aud', 'exp', 'nonce', 'unsigned', 'unknown-key'] as const)(
  'a client that validates ID tokens refuses one with the error %s',
  async (idTokenError) => {
    await using provider = await startProvider({ idTokenError });
    // Otherwise the client relies on TLS in place of the signature (OpenID Connect Core, 3.1.3.7).
    client.enableNonRepudiationChecks(provider.config);
    await expect(provider.logIn()).rejects.toThrow();
    provider.emulator.change({ idTokenError: 'none' });
    expect((await provider.logIn()).claims()?.sub).toBe('alice');
  },
);

test('an access token that is a JWT says for whom and for which API it is, and works as an opaque one does', async () => {
  const clients = [{ ...TOOL, claims: { tenant: 'home' } }];
  await using provider = await startProvider({ accessTokenFormat: 'jwt', clients });
  const { emulator, config } = provider;
  const tokens = await provider.logIn('openid read');
  const keys = createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri ?? ''));
  const checks = { issuer: emulator.frontendUrl, audience: emulator.baseUrl, typ: 'at+jwt' };
  const { payload } = await jwtVerify(tokens.access_token, keys, checks);
  const expected = { sub: 'alice', client_id: TOOL.id, scope: 'openid read', tenant: 'home', roles: ['owner'] };
  expect(payload).toMatchObject(expected);
  const whoami = () => get(`${emulator.baseUrl}/api/whoami`, { authorization: `Bearer ${tokens.access_token}` });
  expect((await whoami()).status).toBe(200);
  expect(emulator.secretsIssued('access_token', 'id_token')).toEqual([tokens.access_token, tokens.id_token]);
  expect((await get(`${emulator.baseUrl}/api/whoami`, { authorization: `Bearer ${payload.jti}` })).status).toBe(401);
  await client.tokenRevocation(config, tokens.access_token);
  expect((await whoami()).status).toBe(401);
});

test('after a rotation new tokens have the new key, and the former key is served until the next one', async () => {
  using folder = stateFolder();
  const options = {
    clients: [TOOL],
    users: [SUBJECT],
    accessTokenFormat: 'jwt',
    state: join(folder.path, 'emulator.db'),
  } as const;
  const issue = async (emulator: Emulator) => {
    const form = { grant_type: 'client_credentials', client_id: TOOL.id, client_secret: TOOL.secret };
    const answer = await post(`${emulator.frontendUrl}/oauth2/token`, form);
    return ((await answer.json()) as { access_token: string }).access_token;
  };
  const isVerified = async (emulator: Emulator, token: string) => {
    const keys = createRemoteJWKSet(new URL(`${emulator.frontendUrl}/oauth2/jwks`));
    return await jwtVerify(token, keys).then(
      () => true,
      () => false,
    );
  };
  const tokens: string[] = [];
  {
    await using emulator = await startEmulator(options);
    tokens.push(await issue(emulator));
    emulator.rotateSigningKey();
    tokens.push(await issue(emulator));
    expect(new Set(tokens.map((token) => decodeProtectedHeader(token).kid)).size).toBe(2);
  }
  {
    await using emulator = await startEmulator(options);
    for (const token of tokens) {
      expect(await isVerified(emulator, token)).toBe(true);
      expect((await whoami(emulator, token)).status).toBe(200);
    }
    const rotated = await requestEmulatorApi(emulator, 'POST', 'keys/rotate', {});
    const { keys } = (await rotated.json()) as { keys: { kid: string }[] };
    tokens.push(await issue(emulator));
    const [oldest = '', former = '', newest = ''] = tokens;
    expect(keys.map(({ kid }) => kid)).toEqual([newest, former].map((token) => decodeProtectedHeader(token).kid));
    expect(await Promise.all(tokens.map((token) => isVerified(emulator, token)))).toEqual([false, true, true]);
    expect((await whoami(emulator, oldest)).status).toBe(401);
    await emulator.reset();
  }
  await using emulator = await startEmulator(options);
  expect(await Promise.all(tokens.map((token) => isVerified(emulator, token)))).toEqual([false, false, false]);
});

test('a client gets access of its own without a refresh token or an ID token, and a public client none', async () => {
  const clients = [TOOL, { id: 'browser' }];
  await using provider = await startProvider({ clients });
  const { config, emulator } = provider;
  const tokens = await client.clientCredentialsGrant(config, { scope: 'openid read' });
  expect(tokens).toMatchObject({ token_type: 'bearer', scope: 'openid read' });
  expect(tokens).not.toHaveProperty('refresh_token');
  expect(tokens).not.toHaveProperty('id_token');
  const own = { grant_type: 'client_credentials', client_id: 'browser' };
  const endpoint = `${emulator.frontendUrl}/oauth2/token`;
  expect(await errorOf(await post(endpoint, own))).toEqual([400, 'unauthorized_client']);
  emulator.change({ flows: 'code' });
  const refused = { ...own, client_id: TOOL.id, client_secret: TOOL.secret };
  expect(await errorOf(await post(endpoint, refused))).toEqual([400, 'unsupported_grant_type']);
});

test('introspection tells a client with a secret whether a token is valid, and nothing about one that is not', async () => {
  await using provider = await startProvider({ clients: [TOOL, { id: 'browser' }] });
  const { config } = provider;
  const { access_token, refresh_token = '' } = await provider.logIn('openid read');
  const about = { active: true, sub: 'alice', client_id: TOOL.id, scope: 'openid read' };
  const inspected = await client.tokenIntrospection(config, access_token);
  expect(inspected).toMatchObject({ ...about, exp: expect.any(Number), token_type: 'Bearer' });
  expect(await client.tokenIntrospection(config, refresh_token)).toMatchObject(about);
  await client.tokenRevocation(config, refresh_token);
  for (const ended of [access_token, refresh_token, 'of-another-server'])
    expect(await client.tokenIntrospection(config, ended)).toEqual({ active: false });
  const { introspection_endpoint = '', ...metadata } = config.serverMetadata();
  const open = await post(introspection_endpoint, { client_id: 'browser', token: access_token });
  expect(await errorOf(open)).toEqual([401, 'invalid_client']);
  expect(metadata['introspection_endpoint_auth_methods_supported']).not.toContain('none');
  provider.emulator.change({ clientAuthentication: 'none' });
  const unauthenticated = await post(introspection_endpoint, { client_id: TOOL.id, token: access_token });
  expect(await errorOf(unauthenticated)).toEqual([401, 'invalid_client']);
  const discovered = await get(`${provider.emulator.frontendUrl}/.well-known/openid-configuration`);
  expect(await discovered.text()).not.toContain('introspection');
  provider.emulator.change({ clientAuthentication: 'any' });
  provider.emulator.change({ refreshLifetime: 60 });
  const unused = (await provider.logIn()).refresh_token ?? '';
  provider.emulator.advance(61);
  expect(await client.tokenIntrospection(config, unused)).toEqual({ active: false });
});

test('userinfo wants a valid token with the scope openid', async () => {
  await using provider = await startProvider();
  const { access_token } = await client.clientCredentialsGrant(provider.config, { scope: 'read' });
  const userinfo = provider.config.serverMetadata().userinfo_endpoint ?? '';
  const answer = await get(userinfo, { authorization: `Bearer ${access_token}` });
  expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([403, expect.stringContaining('openid')]);
  expect((await get(userinfo)).status).toBe(401);
});

test('scripts of web pages of this machine may call the endpoints for programs, and others only if the setting says so', async () => {
  await using provider = await startProvider();
  const { emulator } = provider;
  const preflight = async (origin: string, path: string) => {
    const headers = { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'dpop' };
    const answer = await fetch(`${emulator.frontendUrl}${path}`, { method: 'OPTIONS', headers });
    if (answer.ok) expect(answer.headers.get('access-control-allow-methods')).toBe('GET, POST, PUT, DELETE');
    return [answer.status, answer.headers.get('access-control-allow-origin')];
  };
  const own = 'http://localhost:5173';
  const foreign = 'https://app.example';
  expect(await preflight(own, '/oauth2/token')).toEqual([204, own]);
  expect(await preflight(foreign, '/oauth2/token')).toEqual([405, null]);
  expect(await preflight(own, '/oauth2/authorize')).toEqual([405, null]);
  const discovery = `${emulator.frontendUrl}/.well-known/openid-configuration`;
  expect((await get(discovery, { origin: own })).headers.get('access-control-allow-origin')).toBe(own);
  emulator.addFault({ kind: 'status', endpoint: 'discovery', status: 503 });
  const faulty = await get(discovery, { origin: own });
  expect([faulty.status, faulty.headers.get('access-control-allow-origin')]).toEqual([503, own]);
  emulator.change({ cors: 'any' });
  expect(await preflight(foreign, '/oauth2/token')).toEqual([204, foreign]);
  emulator.change({ cors: 'none' });
  expect(await preflight(own, '/oauth2/token')).toEqual([405, null]);
});

test('a token with given claims is issued without a login, and is verified with the JWK Set', async () => {
  await using emulator = await startEmulator({ users: [SUBJECT] });
  const keys = createRemoteJWKSet(new URL(`${emulator.frontendUrl}/oauth2/jwks`));
  const verified = (token: string) =>
    jwtVerify(token, keys, { issuer: emulator.frontendUrl, audience: emulator.baseUrl, typ: 'at+jwt' });
  expect((await verified(emulator.issueToken())).payload).toMatchObject({ sub: ALICE.name });
  const issued = await requestEmulatorApi(emulator, 'POST', 'token', { sub: 'bob', roles: ['admin'] });
  const { access_token } = (await issued.json()) as { access_token: string };
  const { payload } = await verified(access_token);
  expect(payload).toMatchObject({ sub: 'bob', roles: ['admin'] });
  await expect(verified(emulator.issueToken({ exp: 1 }))).rejects.toThrow('"exp" claim timestamp check failed');
  expect((await whoami(emulator, emulator.issueToken())).status).toBe(401);
  expect(emulator.secretsIssued('access_token')).toContain(access_token);
});

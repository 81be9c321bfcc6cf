import { createHash } from 'node:crypto';
import { calculateJwkThumbprint, decodeJwt, exportJWK, generateKeyPair, SignJWT } from 'jose';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { type EmulatorOptions, startEmulator } from '../../../src/emulator/index.ts';
import { TOOL } from '../oauth2/stock-client.ts';
import { ALICE, errorOf, get, post, whoami } from '../portal-client.ts';

const redirect_uri = 'http://localhost:5173/callback';
const BROWSER = { id: 'browser', redirectUris: [redirect_uri] };
const insecure = { execute: [client.allowInsecureRequests] };

/** A server on the machine's clock, and openid-client as a public client with two keys. */
async function withKeys(options: EmulatorOptions = {}) {
  const emulator = await startEmulator({ clients: [BROWSER, TOOL], users: [ALICE], ...options });
  const issuer = new URL(emulator.frontendUrl);
  const config = await client.discovery(issuer, BROWSER.id, undefined, client.None(), insecure);
  const [own, other] = [await client.randomDPoPKeyPair(), await client.randomDPoPKeyPair()];
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const challenge = await client.calculatePKCECodeChallenge(pkceCodeVerifier);
  return {
    emulator,
    config,
    own,
    jkt: await calculateJwkThumbprint(await exportJWK(own.publicKey)),
    handle: client.getDPoPHandle(config, own),
    otherHandle: client.getDPoPHandle(config, other),
    async logIn(DPoP?: client.DPoPHandle, more: Record<string, string> = {}) {
      const pkce = { code_challenge: challenge, code_challenge_method: 'S256' };
      const url = client.buildAuthorizationUrl(config, { redirect_uri, scope: 'openid read', ...pkce, ...more });
      const { location } = await emulator.login({ authorizeUrl: url.href, user: ALICE.name });
      return client.authorizationCodeGrant(config, new URL(location), { pkceCodeVerifier }, {}, DPoP && { DPoP });
    },
    callApi: (token: string, DPoP: client.DPoPHandle) =>
      client.fetchProtectedResource(config, token, new URL(`${emulator.baseUrl}/api/whoami`), 'GET', null, undefined, {
        DPoP,
      }),
    [Symbol.asyncDispose]: () => emulator.close(),
  };
}

test('RFC 9449, 6: the tokens of a request with a proof are bound to its key, and say so', async () => {
  await using cloud = await withKeys({ accessTokenFormat: 'jwt' });
  const tokens = await cloud.logIn(cloud.handle);
  const cnf = { jkt: cloud.jkt };
  expect(tokens.token_type).toBe('dpop');
  expect(decodeJwt(tokens.access_token)).toMatchObject({ cnf });
  const tool = await client.discovery(new URL(cloud.emulator.frontendUrl), TOOL.id, TOOL.secret, undefined, insecure);
  const inspected = await client.tokenIntrospection(tool, tokens.access_token);
  expect(inspected).toMatchObject({ token_type: 'DPoP', cnf });
  expect((await cloud.logIn()).token_type).toBe('bearer');
});

test('RFC 9449, 7.1: a bound token needs a proof for it, at the API and at the userinfo endpoint', async () => {
  await using cloud = await withKeys();
  const { config, handle, otherHandle, emulator } = cloud;
  const { access_token } = await cloud.logIn(handle);
  expect(await (await cloud.callApi(access_token, handle)).json()).toEqual({ user: 'alice', scope: 'openid read' });
  expect(await client.fetchUserInfo(config, access_token, 'alice', { DPoP: handle })).toMatchObject({ sub: 'alice' });
  await expect(cloud.callApi(access_token, otherHandle)).rejects.toMatchObject({ status: 401 });
  await expect(client.fetchUserInfo(config, access_token, 'alice', { DPoP: otherHandle })).rejects.toThrow();
  const asBearer = await whoami(emulator, access_token);
  const challenge = asBearer.headers.get('www-authenticate');
  expect([await errorOf(asBearer), challenge]).toEqual([
    [401, 'invalid_token'],
    expect.stringMatching(/^DPoP .*error="invalid_token", algs="ES256 /),
  ]);
  const unbound = (await cloud.logIn()).access_token;
  await expect(cloud.callApi(unbound, handle)).rejects.toMatchObject({ status: 401 });
  expect((await whoami(emulator, unbound)).status).toBe(200);
});

test('RFC 9449, 5: a public client refreshes only with the key of its refresh token, and other attempts do not use it up', async () => {
  await using cloud = await withKeys();
  const { config, handle, otherHandle, emulator } = cloud;
  const { refresh_token = '' } = await cloud.logIn(handle);
  for (const options of [{ DPoP: otherHandle }, undefined]) {
    const refused = client.refreshTokenGrant(config, refresh_token, {}, options);
    await expect(refused).rejects.toMatchObject({ error: 'invalid_grant' });
  }
  const next = await client.refreshTokenGrant(config, refresh_token, {}, { DPoP: handle });
  expect((await cloud.callApi(next.access_token, handle)).status).toBe(200);
  const issuer = new URL(emulator.frontendUrl);
  const tool = await client.discovery(issuer, TOOL.id, TOOL.secret, undefined, insecure);
  const own = await client.clientCredentialsGrant(tool, {}, { DPoP: handle });
  expect((await cloud.callApi(own.access_token, handle)).status).toBe(200);
  emulator.change({ refreshGraceTime: 60 });
  const authorizeUrl = client.buildAuthorizationUrl(tool, { redirect_uri: TOOL.redirectUris[1] ?? '' }).href;
  const { location } = await emulator.login({ authorizeUrl, user: ALICE.name });
  const first = await client.authorizationCodeGrant(tool, new URL(location), undefined, {}, { DPoP: handle });
  const refresh = (DPoP: client.DPoPHandle) => client.refreshTokenGrant(tool, first.refresh_token ?? '', {}, { DPoP });
  const second = await refresh(otherHandle);
  await expect(refresh(handle)).rejects.toMatchObject({ error: 'invalid_grant' });
  expect((await refresh(otherHandle)).access_token).toBe(second.access_token);
});

test('RFC 9449, 4.3: a proof is refused for another request, with a wrong type, key, age or hash, and at its second use', async () => {
  await using cloud = await withKeys();
  const endpoint = `${cloud.emulator.frontendUrl}/oauth2/token`;
  const api = `${cloud.emulator.baseUrl}/api/whoami`;
  const { publicKey, privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = await exportJWK(publicKey);
  const iat = Math.floor(Date.now() / 1000);
  const prove = (claims: object = {}, header: object = {}) =>
    new SignJWT({ htm: 'POST', htu: `${endpoint}?x#y`, jti: crypto.randomUUID(), iat, ...claims })
      .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
      .sign(privateKey);
  const request = (dpop: string) => {
    const form = { grant_type: 'client_credentials', client_id: TOOL.id, client_secret: TOOL.secret };
    return post(endpoint, form, { dpop });
  };
  const wrong = [
    await prove({ htm: 'GET' }),
    await prove({ htu: api }),
    await prove({ htu: 'x' }),
    await prove({ jti: undefined }),
    await prove({ iat: undefined }),
    await prove({ iat: iat - 600 }),
    await prove({ iat: iat + 600 }),
    await prove({}, { typ: 'JWT' }),
    await prove({}, { jwk: undefined }),
    await prove({}, { jwk: await exportJWK(privateKey) }),
    await prove({}, { jwk: await exportJWK((await generateKeyPair('ES256')).publicKey) }),
    'x.y.z',
  ];
  for (const one of wrong) expect(await errorOf(await request(one)), one).toEqual([400, 'invalid_dpop_proof']);
  cloud.emulator.advance(86_400);
  const right = await prove();
  const { access_token } = (await (await request(right)).json()) as { access_token: string };
  expect(await errorOf(await request(right))).toEqual([400, 'invalid_dpop_proof']);
  const call = async (claims: object) =>
    get(api, { authorization: `DPoP ${access_token}`, dpop: await prove({ htm: 'GET', htu: api, ...claims }) });
  const ath = createHash('sha256').update(access_token).digest('base64url');
  for (const claims of [{}, { ath: 'x' }, { ath, htm: 'POST' }])
    expect(await errorOf(await call(claims))).toEqual([401, 'invalid_dpop_proof']);
  expect((await call({ ath })).status).toBe(200);
  const without = await get(api, { authorization: `DPoP ${access_token}` });
  expect(await errorOf(without)).toEqual([401, 'invalid_token']);
});

test('RFC 9449, 8: the server can require a nonce, which it replaces', async () => {
  await using cloud = await withKeys({ dpop: 'nonce' });
  const { handle, emulator } = cloud;
  let seen = 0;
  /** The answers of an endpoint since the last call. */
  const answers = (of: string) => {
    const all = emulator.requests.slice(seen).filter(({ endpoint }) => endpoint === of);
    seen = emulator.requests.length;
    return all.map(({ answer, status }) => answer['error'] ?? status);
  };
  const { access_token } = await cloud.logIn(handle);
  expect(answers('token')).toEqual(['use_dpop_nonce', 200]);
  await cloud.logIn(handle);
  expect(answers('token')).toEqual([200]);
  expect((await cloud.callApi(access_token, handle)).status).toBe(200);
  seen = emulator.requests.length;
  emulator.advance(700);
  expect((await cloud.callApi(access_token, handle)).status).toBe(200);
  expect(answers('whoami')).toEqual(['use_dpop_nonce', 200]);
});

test('RFC 9449, 10: dpop_jkt and a proof at the push bind the code to a key', async () => {
  await using cloud = await withKeys();
  const { handle, otherHandle, config, jkt, emulator } = cloud;
  await expect(cloud.logIn(otherHandle, { dpop_jkt: jkt })).rejects.toMatchObject({ error: 'invalid_grant' });
  await expect(cloud.logIn(undefined, { dpop_jkt: jkt })).rejects.toMatchObject({ error: 'invalid_grant' });
  expect((await cloud.logIn(handle, { dpop_jkt: jkt })).token_type).toBe('dpop');
  const push = (DPoP: client.DPoPHandle, more: Record<string, string> = {}) =>
    client.buildAuthorizationUrlWithPAR(config, { redirect_uri, ...more }, { DPoP });
  await expect(push(otherHandle, { dpop_jkt: jkt })).rejects.toMatchObject({ error: 'invalid_request' });
  const { href: authorizeUrl } = await push(handle);
  const { location } = await emulator.login({ authorizeUrl, user: ALICE.name });
  const exchange = (DPoP: client.DPoPHandle) =>
    client.authorizationCodeGrant(config, new URL(location), undefined, {}, { DPoP });
  await expect(exchange(otherHandle)).rejects.toMatchObject({ error: 'invalid_grant' });
  expect((await exchange(handle)).token_type).toBe('dpop');
});

test('RFC 9449, 5.1: the metadata names the algorithms, and a setting requires proofs or ignores them', async () => {
  await using cloud = await withKeys({ dpop: 'required' });
  expect(cloud.config.serverMetadata().dpop_signing_alg_values_supported).toContain('ES256');
  await expect(cloud.logIn()).rejects.toMatchObject({ error: 'invalid_dpop_proof' });
  const challenge = (await get(`${cloud.emulator.baseUrl}/api/whoami`)).headers.get('www-authenticate');
  expect(challenge).toMatch(/^DPoP realm="portal", algs=/);
  expect((await cloud.logIn(cloud.handle)).token_type).toBe('dpop');
  cloud.emulator.change({ dpop: 'ignored' });
  expect((await cloud.logIn(cloud.handle)).token_type).toBe('bearer');
  const server = `${cloud.emulator.frontendUrl}/.well-known/openid-configuration`;
  expect(await (await get(server)).json()).not.toHaveProperty('dpop_signing_alg_values_supported');
});

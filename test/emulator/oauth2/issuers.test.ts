import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { type EmulatorOptions, startEmulator } from '../../../src/emulator/index.ts';
import { ALICE, errorOf, get, post, redirectLocation, whoami } from '../portal-client.ts';

const REDIRECT_URI = 'https://tool.example/back';
const TOOL = { id: 'tool', secret: 'tool-secret', redirectUris: [REDIRECT_URI] };

/** An emulator with three issuers, and unmodified openid-client at the default one and at `staff`. */
async function startIssuers(options: EmulatorOptions = {}) {
  const emulator = await startEmulator({ clients: [TOOL], users: [ALICE], issuers: ['staff', 'guests'], ...options });
  async function connect(path: string, algorithm: 'oidc' | 'oauth2' = 'oidc') {
    const http = { execute: [client.allowInsecureRequests], algorithm };
    const issuer = new URL(`${emulator.frontendUrl}${path}`);
    const config = await client.discovery(issuer, TOOL.id, TOOL.secret, undefined, http);
    const pkceCodeVerifier = client.randomPKCECodeVerifier();
    const challenge = await client.calculatePKCECodeChallenge(pkceCodeVerifier);
    const parameters = { redirect_uri: REDIRECT_URI, scope: 'openid read', code_challenge: challenge };
    const url = client.buildAuthorizationUrl(config, { ...parameters, code_challenge_method: 'S256' }).href;
    return {
      config,
      url,
      issuer: config.serverMetadata().issuer,
      exchange: (location: string) => client.authorizationCodeGrant(config, new URL(location), { pkceCodeVerifier }),
      async logIn() {
        const { location } = await emulator.login({ authorizeUrl: url, user: ALICE.name });
        return this.exchange(location);
      },
    };
  }
  const [main, staff] = [await connect(''), await connect('/staff')];
  return { emulator, main, staff, connect, [Symbol.asyncDispose]: () => emulator.close() };
}

test('each issuer has metadata at both well-known addresses, and its own endpoints', async () => {
  await using cloud = await startIssuers();
  const { frontendUrl, baseUrl } = cloud.emulator;
  for (const algorithm of ['oidc', 'oauth2'] as const) {
    const { config } = await cloud.connect('/staff', algorithm);
    const { token_endpoint, jwks_uri, issuer } = config.serverMetadata();
    const own = `${frontendUrl}/staff`;
    expect({ issuer, token_endpoint, jwks_uri }).toEqual({
      issuer: own,
      token_endpoint: `${own}/oauth2/token`,
      jwks_uri: `${own}/oauth2/jwks`,
    });
  }
  const resource = await get(`${baseUrl}/.well-known/oauth-protected-resource`);
  expect(await resource.json()).toMatchObject({
    authorization_servers: [frontendUrl, `${frontendUrl}/staff`, `${frontendUrl}/guests`],
  });
  for (const unknown of ['/nobody/oauth2/jwks', '/staff/sso/token', '/staff/staff/oauth2/jwks'])
    expect((await get(`${frontendUrl}${unknown}`)).status, unknown).toBe(404);
});

test('a stock client logs in at an issuer with a path, and refreshes, and the API accepts the token', async () => {
  await using cloud = await startIssuers({ accessTokenFormat: 'jwt' });
  const { emulator, staff } = cloud;
  const page = await get(staff.url);
  expect(page.status).toBe(200);
  const loggedIn = await post(staff.url, { username: ALICE.name, password: ALICE.password });
  expect(loggedIn.headers.get('set-cookie')).toContain('Path=/staff/oauth2;');
  const tokens = await staff.exchange(redirectLocation(loggedIn));
  expect(tokens.claims()).toMatchObject({ iss: `${emulator.frontendUrl}/staff`, sub: 'alice' });
  expect(await client.fetchUserInfo(staff.config, tokens.access_token, 'alice')).toMatchObject({ sub: 'alice' });
  expect(await client.tokenIntrospection(staff.config, tokens.access_token)).toMatchObject({ iss: staff.issuer });
  const next = await client.refreshTokenGrant(staff.config, tokens.refresh_token ?? '');
  expect(next.claims()?.iss).toBe(staff.issuer);
  expect((await whoami(emulator, next.access_token)).status).toBe(200);
  expect(emulator.requests.find(({ endpoint }) => endpoint === 'token')?.url).toBe('/staff/oauth2/token');
});

test('no issuer accepts the codes and tokens of another one', async () => {
  await using cloud = await startIssuers();
  const { emulator, main, staff } = cloud;
  const tokens = await main.logIn();
  const { access_token, refresh_token = '' } = tokens;
  const refused = { error: 'invalid_grant' };
  await expect(client.refreshTokenGrant(staff.config, refresh_token)).rejects.toMatchObject(refused);
  await expect(client.fetchUserInfo(staff.config, access_token, 'alice')).rejects.toMatchObject({ status: 401 });
  for (const token of [access_token, refresh_token]) {
    expect(await client.tokenIntrospection(staff.config, token)).toEqual({ active: false });
    await client.tokenRevocation(staff.config, token);
    expect(await client.tokenIntrospection(main.config, token)).toMatchObject({ active: true });
  }
  const type = 'urn:ietf:params:oauth:token-type';
  const exchanged = (subject_token: string, name: string) =>
    client.genericGrantRequest(staff.config, 'urn:ietf:params:oauth:grant-type:token-exchange', {
      subject_token,
      subject_token_type: `${type}:${name}`,
    });
  await expect(exchanged(access_token, 'access_token')).rejects.toMatchObject({ error: 'invalid_request' });
  await expect(exchanged(tokens.id_token ?? '', 'id_token')).rejects.toMatchObject({ error: 'invalid_request' });
  const { location } = await emulator.login({ authorizeUrl: main.url, user: ALICE.name });
  const code = new URL(location).searchParams.get('code') ?? '';
  const form = { grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI };
  const credentials = { client_id: TOOL.id, client_secret: TOOL.secret };
  expect(await errorOf(await post(`${staff.issuer}/oauth2/token`, { ...form, ...credentials }))).toEqual([
    ...[400, 'invalid_grant'],
  ]);
  const own = await main.exchange(location);
  expect(await errorOf(await post(`${staff.issuer}/oauth2/token`, { ...form, ...credentials }))).toEqual([
    ...[400, 'invalid_grant'],
  ]);
  expect(await client.tokenIntrospection(main.config, own.access_token)).toMatchObject({ active: true });
  const ofStaff = { grant_type: 'refresh_token', refresh_token: (await staff.logIn()).refresh_token ?? '' };
  expect(await errorOf(await post(`${emulator.frontendUrl}/sso/token`, { ...ofStaff, ...credentials }))).toEqual([
    ...[400, 'invalid_grant'],
  ]);
  const device = await client.initiateDeviceAuthorization(main.config, {});
  expect((await get(`${staff.issuer}/oauth2/device?user_code=${device.user_code}`)).status).toBe(400);
  const poll = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: device.device_code };
  expect(await errorOf(await post(`${staff.issuer}/oauth2/token`, { ...poll, ...credentials }))).toEqual([
    ...[400, 'invalid_grant'],
  ]);
  const pushed = await client.buildAuthorizationUrlWithPAR(main.config, { redirect_uri: REDIRECT_URI });
  expect((await get(`${staff.issuer}/oauth2/authorize${pushed.search}`)).status).toBe(400);
  expect((await get(pushed.href)).status).toBe(200);
});

test.for(['', 'oauth2', 'sso', 'a/b', '..', 'x?'])('an issuer cannot have the name %j', async (name) => {
  await expect(startEmulator({ issuers: [name] })).rejects.toThrow(/^issuers\.0: must be letters, .*\(found /);
});

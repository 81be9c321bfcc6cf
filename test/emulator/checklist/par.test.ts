import * as client from 'openid-client';
import { expect, test } from 'vitest';
import type { EmulatorOptions } from '../../../src/emulator/index.ts';
import { startCloud, TOOL } from '../oauth2/stock-client.ts';
import { ALICE, errorOf, get, post, redirectLocation } from '../portal-client.ts';

const OTHER = { id: 'other', secret: 'other-secret', redirectUris: ['https://other.example/back'] };
const redirect_uri = TOOL.redirectUris[1] ?? '';

/** A server, and openid-client that pushes its requests. */
async function withPushes(options: EmulatorOptions = {}) {
  const cloud = await startCloud({ clients: [TOOL, OTHER], ...options });
  const { emulator } = cloud;
  const insecure = { execute: [client.allowInsecureRequests] };
  const config = await client.discovery(new URL(emulator.frontendUrl), TOOL.id, TOOL.secret, undefined, insecure);
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const parameters = {
    ...{ redirect_uri, scope: 'openid read', state: 'a b+c' },
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  };
  return {
    ...cloud,
    config,
    push: async () => (await client.buildAuthorizationUrlWithPAR(config, parameters)).href,
    url: () => client.buildAuthorizationUrl(config, parameters).href,
    redeem: (location: string) =>
      client.authorizationCodeGrant(config, new URL(location), { pkceCodeVerifier, expectedState: 'a b+c' }),
    [Symbol.asyncDispose]: () => emulator.close(),
  };
}

test('RFC 9126, 4: the user opens the request_uri, and the parameters are those of the push', async () => {
  await using cloud = await withPushes();
  const url = await cloud.push();
  expect([...new URL(url).searchParams.keys()].sort()).toEqual(['client_id', 'request_uri']);
  expect((await get(`${url}&scope=admin&redirect_uri=https%3A%2F%2Fevil.example`)).status).toBe(200);
  const login = { username: ALICE.name, password: ALICE.password };
  const tokens = await cloud.redeem(redirectLocation(await post(url, login)));
  expect([tokens.scope, tokens.claims()?.sub]).toEqual(['openid read', 'alice']);
});

test('RFC 9126, 2.2: a request_uri is valid for its client alone, for one login, and 90 seconds until it is opened', async () => {
  await using cloud = await withPushes();
  const first = await cloud.push();
  const ofOther = first.replace(`client_id=${TOOL.id}`, `client_id=${OTHER.id}`);
  expect((await get(ofOther)).status).toBe(400);
  expect((await get(first)).status).toBe(200);
  cloud.clock.pass(90);
  const { location } = await cloud.emulator.login({ authorizeUrl: first, user: ALICE.name });
  expect((await cloud.redeem(location)).token_type).toBe('bearer');
  expect((await get(first)).status).toBe(400);
  const refused = await cloud.push();
  await cloud.emulator.login({ authorizeUrl: refused, deny: true });
  const expired = await cloud.push();
  cloud.clock.pass(90);
  const unknown = first.replace(/request_uri=.*/, 'request_uri=urn%3Aunknown');
  for (const url of [refused, expired, unknown]) expect((await get(url)).status, url).toBe(400);
  await expect(cloud.emulator.login({ authorizeUrl: expired, user: ALICE.name })).rejects.toThrow(
    'a request_uri that has expired or was used',
  );
  const last = await cloud.push();
  await cloud.emulator.reset();
  expect((await get(last)).status).toBe(400);
});

test('RFC 9126, 2.3: a wrong request is refused at the push, with the error in JSON', async () => {
  await using cloud = await withPushes({ pkce: 'required' });
  const { pushed_authorization_request_endpoint: endpoint = '' } = cloud.config.serverMetadata();
  const right = { client_id: TOOL.id, client_secret: TOOL.secret, response_type: 'code', redirect_uri };
  const cases: [Record<string, string>, number, string][] = [
    [{}, 400, 'invalid_request'],
    [{ redirect_uri: 'https://evil.example' }, 400, 'invalid_request'],
    [{ request_uri: 'urn:x' }, 400, 'invalid_request'],
    [{ response_type: 'token' }, 400, 'unsupported_response_type'],
    [{ scope: '"' }, 400, 'invalid_scope'],
    [{ resource: 'x' }, 400, 'invalid_target'],
    [{ client_secret: 'wrong' }, 401, 'invalid_client'],
  ];
  for (const [wrong, ...expected] of cases)
    expect(await errorOf(await post(endpoint, { ...right, ...wrong })), JSON.stringify(wrong)).toEqual(expected);
  expect((await get(endpoint)).status).toBe(405);
});

test('RFC 9126, 5: the setting says whether every request must be pushed', async () => {
  await using cloud = await withPushes();
  expect(cloud.config.serverMetadata().require_pushed_authorization_requests).toBe(false);
  expect((await get(cloud.url())).status).toBe(200);
  cloud.emulator.change({ requirePushedAuthorizationRequests: true });
  const refused = await get(cloud.url());
  expect(new URL(redirectLocation(refused)).searchParams.get('error')).toBe('invalid_request');
  const { location } = await cloud.emulator.login({ authorizeUrl: await cloud.push(), user: ALICE.name });
  expect((await cloud.redeem(location)).scope).toBe('openid read');
});

import { decodeJwt } from 'jose';
import * as client from 'openid-client';
import { expect, test } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { ALICE, errorOf, get, parseTokens, post, whoami } from '../portal-client.ts';

const REDIRECT_URI = 'http://localhost:3000/callback';
const insecure = { execute: [client.allowInsecureRequests] };

function send(method: string, url: string, body?: unknown, token?: string): Promise<Response> {
  return fetch(url, {
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

test('a client that knows only the API finds the server, registers itself, and gets a token for that API', async () => {
  await using emulator = await startEmulator({ users: [ALICE], accessTokenFormat: 'jwt' });
  const api = `${emulator.baseUrl}/api/whoami`;
  const challenge = (await get(api)).headers.get('www-authenticate') ?? '';
  const metadata = (await (await get(/resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '')).json()) as {
    resource: string;
    authorization_servers: string[];
  };
  expect(metadata).toMatchObject({ resource: api, authorization_servers: [emulator.frontendUrl] });
  const [server = ''] = metadata.authorization_servers;
  const ownMetadata = { redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'none', client_name: 'A new app' };
  const config = await client.dynamicClientRegistration(new URL(server), ownMetadata, client.None(), insecure);
  const pkceCodeVerifier = client.randomPKCECodeVerifier();
  const authorizeUrl = client.buildAuthorizationUrl(config, {
    ...{ redirect_uri: REDIRECT_URI, scope: 'read', resource: metadata.resource },
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  }).href;
  expect(await (await get(authorizeUrl)).text()).toContain('A new app');
  const { location } = await emulator.login({ authorizeUrl, user: ALICE.name });
  const tokens = await client.authorizationCodeGrant(config, new URL(location), { pkceCodeVerifier });
  expect(decodeJwt(tokens.access_token).aud).toBe(api);
  const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '');
  expect(decodeJwt(refreshed.access_token)).toMatchObject({ aud: api, client_id: config.clientMetadata().client_id });
  expect((await get(api, { authorization: `Bearer ${refreshed.access_token}` })).status).toBe(200);
});

test('a registration is read, replaced and removed only with its own token, and a reset removes it', async () => {
  await using emulator = await startEmulator();
  const register = async () => {
    const answer = await send('POST', `${emulator.frontendUrl}/oauth2/register`, { redirect_uris: [REDIRECT_URI] });
    return (await answer.json()) as Record<string, string>;
  };
  const own = await register();
  const other = await register();
  expect(own).toMatchObject({ client_secret: expect.any(String), token_endpoint_auth_method: 'client_secret_basic' });
  const { registration_client_uri: uri = '', registration_access_token: token = '' } = own;
  for (const wrong of [other['registration_access_token'], 'wrong', undefined])
    expect((await send('GET', uri, undefined, wrong)).status).toBe(401);
  expect(await (await send('GET', uri, undefined, token)).json()).toEqual(own);
  const changed = { redirect_uris: ['https://app.example/cb'], client_name: 'Renamed' };
  expect(await (await send('PUT', uri, changed, token)).json()).toMatchObject({ ...own, ...changed });
  const { client_id = '', client_secret = '' } = own;
  const form = { grant_type: 'client_credentials' };
  const basic = { authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}` };
  const { access_token } = await parseTokens(await post(`${emulator.frontendUrl}/oauth2/token`, form, basic));
  expect((await whoami(emulator, access_token)).status).toBe(200);
  expect((await send('DELETE', uri, undefined, token)).status).toBe(204);
  expect((await whoami(emulator, access_token)).status).toBe(401);
  expect((await send('GET', uri, undefined, token)).status).toBe(401);
  await emulator.reset();
  const ended = other['registration_access_token'];
  expect((await send('GET', other['registration_client_uri'] ?? '', undefined, ended)).status).toBe(401);
});

test.for([
  ['invalid_redirect_uri', { redirect_uris: ['not a URL'] }],
  ['invalid_redirect_uri', { redirect_uris: [`${REDIRECT_URI}#fragment`] }],
  ['invalid_redirect_uri', { redirect_uris: ['https://tool.example/bäck'] }],
  ['invalid_redirect_uri', { redirect_uris: ['JavaScript:alert(1)'] }],
  ['invalid_redirect_uri', { client_name: 'without an address' }],
  ['invalid_client_metadata', { redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'tls_client_auth' }],
  ['invalid_client_metadata', { redirect_uris: [REDIRECT_URI], token_endpoint_auth_method: 'private_key_jwt' }],
  ['invalid_client_metadata', { redirect_uris: [REDIRECT_URI], grant_types: ['implicit'] }],
  ['invalid_client_metadata', { redirect_uris: [REDIRECT_URI], response_types: ['token'] }],
  ['invalid_client_metadata', 'no object'],
] as const)('a registration is refused with %s if its metadata are %j', async ([error, metadata]) => {
  await using emulator = await startEmulator();
  const endpoint = `${emulator.frontendUrl}/oauth2/register`;
  expect(await errorOf(await send('POST', endpoint, metadata))).toEqual([400, error]);
});

test('a registration must be JSON by its type, so that a page of another site can send none', async () => {
  await using emulator = await startEmulator();
  const body = JSON.stringify({ redirect_uris: [REDIRECT_URI] });
  const headers = { 'content-type': 'text/plain', origin: 'https://app.example' };
  const answer = await fetch(`${emulator.frontendUrl}/oauth2/register`, { method: 'POST', headers, body });
  expect(await errorOf(answer)).toEqual([400, 'invalid_client_metadata']);
});

test('an emulator that is set to know all clients in advance offers no registration', async () => {
  await using emulator = await startEmulator({ registration: false });
  const issuer = new URL(emulator.frontendUrl);
  const config = await client.discovery(issuer, emulator.clientId, undefined, undefined, insecure);
  expect(config.serverMetadata()).not.toHaveProperty('registration_endpoint');
  expect((await send('POST', `${issuer}oauth2/register`, { redirect_uris: [REDIRECT_URI] })).status).toBe(404);
});

import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { type LoginRequest, startEmulator } from '../../../src/emulator/index.ts';
import { errorOf, get, HEATER, obtainCode, post, redirectLocation } from '../portal-client.ts';
import { REDIRECT_URI, refusal, StockClient, startCloud, TOOL } from './stock-client.ts';

test.for(['oauth2', 'oidc'] as const)('%s discovery names the issuer and all endpoints', async (algorithm) => {
  await using cloud = await startCloud();
  const { server } = await StockClient.discover(cloud, undefined, algorithm);
  const issuer = cloud.emulator.frontendUrl;
  expect(server).toMatchObject({
    issuer,
    authorization_endpoint: `${issuer}/oauth2/authorize`,
    token_endpoint: `${issuer}/oauth2/token`,
    device_authorization_endpoint: `${issuer}/oauth2/device_authorization`,
    revocation_endpoint: `${issuer}/oauth2/revoke`,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    grant_types_supported: [
      'authorization_code',
      'urn:ietf:params:oauth:grant-type:device_code',
      'refresh_token',
      'client_credentials',
      'urn:ietf:params:oauth:grant-type:token-exchange',
    ],
  });
});

test('a wrong path, and one of the wrong origin, says where the issuer and its token endpoint are', async () => {
  await using cloud = await startCloud();
  const { baseUrl, frontendUrl } = cloud.emulator;
  for (const url of [
    `${baseUrl}/.well-known/openid-configuration`,
    `${baseUrl}/token`,
    `${frontendUrl}/oauth2/token/`,
  ]) {
    const response = await get(url);
    expect([response.status, await response.json()], url).toEqual([
      404,
      {
        error: 'not_found',
        error_description: `no such path here; the issuer is ${frontendUrl}, its metadata are at ${frontendUrl}/.well-known/openid-configuration, its token endpoint is ${frontendUrl}/oauth2/token`,
      },
    ]);
  }
  expect(await (await get(`${frontendUrl}/oauth2/token`)).json()).toEqual({
    error: 'invalid_request',
    error_description: 'use POST here',
  });
});

test('discovery leaves out what a setting turns off, and a flow that is turned off is refused', async () => {
  await using cloud = await startCloud({ flows: 'device', pkce: 'ignored', clientAuthentication: 'none' });
  const { server } = await StockClient.discover(cloud);
  expect(server).not.toHaveProperty('authorization_endpoint');
  expect(server).not.toHaveProperty('code_challenge_methods_supported');
  expect(server.response_types_supported).toEqual(['none']);
  expect(server.token_endpoint_auth_methods_supported).toEqual(['none']);
  cloud.emulator.change({ flows: 'code', clientAuthentication: 'any' });
  const stock = await StockClient.discover(cloud);
  expect(stock.server).not.toHaveProperty('device_authorization_endpoint');
  const client = { client_id: TOOL.id, client_secret: TOOL.secret };
  const device = await post(`${stock.server.issuer}/oauth2/device_authorization`, client);
  expect(await errorOf(device)).toEqual([400, 'unauthorized_client']);
  const url = stock.authorizationUrl();
  cloud.emulator.change({ flows: 'device' });
  expect(redirectLocation(await get(url))).toContain('error=unauthorized_client');
});

test('a standard client logs in with code and PKCE, refreshes and revokes', async () => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  const first = await stock.obtainTokens('read openid');
  expect(first).toMatchObject({ token_type: 'bearer', expires_in: 3600, scope: 'read openid' });
  expect(oauth.getValidatedIdTokenClaims(first)).toMatchObject({ iss: stock.server.issuer, sub: 'alice', aud: 'tool' });
  expect(await (await stock.whoami(first.access_token)).json()).toEqual({ user: 'alice', scope: 'read openid' });
  const keys = (await (await get(stock.server.jwks_uri ?? '')).json()) as JSONWebKeySet;
  const verified = { issuer: stock.server.issuer, audience: 'tool', currentDate: new Date(cloud.clock.wall) };
  const { protectedHeader } = await jwtVerify(first.id_token ?? '', createLocalJWKSet(keys), verified);
  expect(protectedHeader.alg).toBe('RS256');
  const second = await stock.refresh(first.refresh_token);
  expect(second.refresh_token).not.toBe(first.refresh_token);
  await expect(stock.refresh(first.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
  await stock.revoke(second.refresh_token ?? '');
  await expect(stock.refresh(second.refresh_token)).rejects.toMatchObject(refusal('invalid_grant'));
  expect((await stock.whoami(second.access_token)).status).toBe(401);
  const issued = cloud.emulator.secretsIssued();
  for (const one of [first, second])
    expect(issued).toEqual(expect.arrayContaining([one.access_token, one.refresh_token]));
});

test('a code is exchanged only with the verifier of its challenge, and a wrong attempt does not use it up', async () => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  const verifier = oauth.generateRandomCodeVerifier();
  const code_challenge = await oauth.calculatePKCECodeChallenge(verifier);
  const landed = await stock.logIn(stock.authorizationUrl({ code_challenge, code_challenge_method: 'S256' }));
  const other = oauth.generateRandomCodeVerifier();
  await expect(stock.exchange(landed, other)).rejects.toMatchObject(refusal('invalid_grant'));
  const client = { client_id: TOOL.id, client_secret: TOOL.secret };
  const code = landed.searchParams.get('code') ?? '';
  const without = { ...client, grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI };
  expect(await errorOf(await post(stock.server.token_endpoint ?? '', without))).toEqual([400, 'invalid_grant']);
  expect((await stock.exchange(landed, verifier)).token_type).toBe('bearer');
});

test.for([
  ['a plain challenge', 'optional', { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' }],
  ['a challenge without a method', 'optional', { code_challenge: 'x'.repeat(43) }],
  ['a challenge that is no hash', 'optional', { code_challenge: 'short', code_challenge_method: 'S256' }],
  ['a method without a challenge', 'optional', { code_challenge_method: 'S256' }],
  ['no challenge if PKCE is required', 'required', {}],
] as const)('the authorization endpoint refuses %s', async ([, pkce, parameters]) => {
  await using cloud = await startCloud({ pkce });
  const stock = await StockClient.discover(cloud);
  const landed = new URL(redirectLocation(await get(stock.authorizationUrl({ ...parameters, state: 's' }))));
  expect(landed.href).toContain(REDIRECT_URI);
  const validated = () => oauth.validateAuthResponse(stock.server, stock.client, landed, 's');
  expect(validated).toThrow(expect.objectContaining({ error: 'invalid_request' }));
});

test.for([
  ['request_not_supported', { request: 'e30.e30.' }],
  ['request_uri_not_supported', { request_uri: 'https://tool.example/request' }],
  ['invalid_request', { response_mode: 'form_post' }],
] as const)('the authorization endpoint answers %s to a parameter that it does not support', async ([error, sent]) => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  expect(redirectLocation(await get(stock.authorizationUrl(sent)))).toContain(`error=${error}&`);
  expect((await get(stock.authorizationUrl({ response_mode: 'query' }))).status).toBe(200);
  expect(stock.server.request_uri_parameter_supported).toBe(false);
});

test('PKCE is ignored if the setting says so, and a verifier without a challenge is refused otherwise', async () => {
  await using cloud = await startCloud({ pkce: 'ignored' });
  const stock = await StockClient.discover(cloud);
  const challenge = { code_challenge: 'x', code_challenge_method: 'plain' };
  const verifier = oauth.generateRandomCodeVerifier();
  const landed = await stock.logIn(stock.authorizationUrl(challenge));
  expect((await stock.exchange(landed, verifier)).token_type).toBe('bearer');
  cloud.emulator.change({ pkce: 'optional' });
  const plain = await stock.logIn(stock.authorizationUrl());
  await expect(stock.exchange(plain, verifier)).rejects.toMatchObject(refusal('invalid_grant'));
});

test('a test logs a user in, or refuses, by the URL that a browser would open', async () => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  const verifier = oauth.generateRandomCodeVerifier();
  const challenge = { code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' };
  const authorizeUrl = stock.authorizationUrl({ ...challenge, state: 'a b' });
  const { location } = await cloud.emulator.login({ authorizeUrl, user: 'alice' });
  expect((await stock.exchange(new URL(location), verifier, REDIRECT_URI, 'a b')).token_type).toBe('bearer');
  const refused = await cloud.emulator.login({ authorizeUrl: new URL(authorizeUrl), deny: true });
  expect(new URL(refused.location).searchParams.get('error')).toBe('access_denied');
  const body = JSON.stringify({ authorize_url: stock.authorizationUrl({ response_type: 'token' }), user: 'alice' });
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body };
  const answer = await fetch(`${cloud.emulator.baseUrl}/_emulator/login`, json);
  expect(await answer.json()).toEqual({ location: expect.stringContaining('error=unsupported_response_type') });
});

test.for([
  [{ authorizeUrl: 'nonsense', user: 'alice' }, 'authorizeUrl: must be a URL of'],
  [{ authorizeUrl: 'https://portal.example/oauth2/authorize', user: 'alice' }, 'authorizeUrl: must be a URL of'],
  [{ authorizeUrl: '/oauth2/token', user: 'alice' }, 'authorizeUrl: must be a URL of'],
  [{ authorizeUrl: 'x?code=a-secret', user: 'alice' }, '/oauth2/authorize (found "x")'],
  [
    { authorizeUrl: '/oauth2/authorize?client_id=nobody', user: 'alice' },
    '(found the client_id nobody; registered: tool; start ',
  ],
  [
    { authorizeUrl: '/oauth2/authorize?client_id=tool&client_id=tool', user: 'alice' },
    '(found one with a repeated parameter)',
  ],
  [{ authorizeUrl: '/oauth2/authorize', userName: 'alice' }, 'userName: is unknown'],
  [{ authorizeUrl: '/oauth2/authorize', user: 'alice', deny: 'no' }, 'deny: must be true or false'],
  [{ authorizeUrl: '/oauth2/authorize?client_id=tool&response_type=code', user: 'nobody' }, 'user: must be one of'],
  [{ user: 'alice' }, 'authorizeUrl: must be given, or else state (found neither)'],
  [{ authorizeUrl: '/oauth2/authorize', state: 'x', user: 'alice' }, '(found both)'],
] as const)('a login without a browser is refused if %j', async ([request, message]) => {
  await using cloud = await startCloud({ pkce: 'ignored' });
  const { frontendUrl } = cloud.emulator;
  const authorizeUrl = 'authorizeUrl' in request ? request.authorizeUrl.replace(/^\//, `${frontendUrl}/`) : undefined;
  await expect(cloud.emulator.login({ ...request, authorizeUrl } as LoginRequest)).rejects.toThrow(message);
});

test('the refusal of a redirect URI names it and the registered ones, on the page, in the log, to a test and when it is pushed', async () => {
  const registered = 'http://localhost:3000/callback';
  await using cloud = await startCloud({ clients: [{ id: 'shop', redirectUris: [registered] }] });
  const stock = await StockClient.discover(cloud);
  const advice =
    /found http:\/\/localhost:3000\/callback\/; registered for shop: http:\/\/localhost:3000\/callback; start the emulator with --redirect-uri URI .*redirectUris.*set redirect_rule to any/;
  const authorizeUrl = stock.authorizationUrl({}, `${registered}/`);
  expect(await (await get(authorizeUrl)).text()).toMatch(advice);
  const last = () => cloud.emulator.requests.at(-1);
  expect(last()?.answer).toEqual({ message: expect.stringMatching(advice) });
  expect(last()?.query['redirect_uri']).toBe(`${registered}/`);
  await expect(cloud.emulator.login({ authorizeUrl, user: 'alice' })).rejects.toThrow(advice);
  await post(`${cloud.emulator.frontendUrl}/oauth2/par`, { client_id: 'shop', redirect_uri: `${registered}/` });
  expect(last()?.answer).toMatchObject({ error_description: expect.stringMatching(advice) });
});

test('the generated client logs in at every http address of this machine, and at no other, also with its state restored', async () => {
  const state = join(mkdtempSync(join(tmpdir(), 'lk-')), 'state');
  for (const _ of ['new', 'restored']) {
    await using emulator = await startEmulator({ state });
    const login = (redirect_uri: string) => {
      const query = new URLSearchParams({ response_type: 'code', client_id: emulator.clientId, redirect_uri });
      return emulator.login({ authorizeUrl: `${emulator.frontendUrl}/oauth2/authorize?${query}`, user: 'demo' });
    };
    for (const good of ['http://localhost:3000/callback', 'http://127.0.0.1/x', 'http://[::1]:1/'])
      expect((await login(good)).location).toContain(`${good}?code=`);
    for (const bad of ['https://localhost/', 'http://localhost.example/', 'http://shop.example/'])
      await expect(login(bad)).rejects.toThrow(
        `(found ${bad}; registered for ${emulator.clientId}: every http address`,
      );
  }
});

test('an unsupported grant_type is refused with those that are supported', async () => {
  await using cloud = await startCloud({ flows: 'device' });
  const form = { client_id: TOOL.id, client_secret: TOOL.secret, grant_type: 'password' };
  expect(await (await post(`${cloud.emulator.frontendUrl}/oauth2/token`, form)).json()).toEqual({
    error: 'unsupported_grant_type',
    error_description: 'grant_type must be one of urn:ietf:params:oauth:grant-type:device_code, refresh_token',
  });
});

test('a redirect URI that differs at the token endpoint is named, and so is the right one', async () => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  const landed = await stock.logIn(stock.authorizationUrl());
  const credentials = { client_id: TOOL.id, client_secret: TOOL.secret, grant_type: 'authorization_code' };
  const form = { ...credentials, code: landed.searchParams.get('code') ?? '' };
  for (const redirect_uri of [null, 'https://tool.example/other']) {
    await post(stock.server.token_endpoint ?? '', { ...form, ...(redirect_uri !== null && { redirect_uri }) });
    expect(cloud.emulator.requests.at(-1)?.answer).toMatchObject({
      error_description: `redirect_uri must be that of the authorization request, ${REDIRECT_URI} (found ${redirect_uri ?? 'none'})`,
    });
  }
});

test('the log shows a redirect URI without its query, user and password, and masks the request_uri of a pushed request', async () => {
  await using cloud = await startCloud();
  const redirect_uri = 'https://ann:secret1@tool.example/back?token=secret2';
  await get(`${cloud.emulator.frontendUrl}/oauth2/authorize?${new URLSearchParams({ redirect_uri })}`);
  expect(cloud.emulator.requests[0]?.query['redirect_uri']).toMatch(/^https:\/\/tool\.example\/back\?token=#[\w-]{8}$/);
  const pushed = { client_id: TOOL.id, client_secret: TOOL.secret, redirect_uri: REDIRECT_URI, response_type: 'code' };
  const response = await post(`${cloud.emulator.frontendUrl}/oauth2/par`, pushed);
  const { request_uri } = (await response.json()) as { request_uri: string };
  expect(JSON.stringify(cloud.emulator.requests)).not.toContain(request_uri);
});

test('the refusal of an unknown client names it and says how to register it, on the page, in the log and to a test', async () => {
  await using cloud = await startCloud();
  const authorizeUrl = `${cloud.emulator.frontendUrl}/oauth2/authorize?client_id=shop`;
  const advice = /found the client_id shop; registered: tool; start the emulator with --client ID:SECRET, .*clients\)/;
  expect(await (await get(authorizeUrl)).text()).toMatch(advice);
  expect(cloud.emulator.requests.at(-1)?.answer).toEqual({ message: expect.stringMatching(advice) });
  await expect(cloud.emulator.login({ authorizeUrl, user: 'alice' })).rejects.toThrow(advice);
});

test('redirect URIs are compared exactly, at both endpoints', async () => {
  await using cloud = await startCloud({ pkce: 'ignored' });
  const stock = await StockClient.discover(cloud);
  for (const wrong of [`${REDIRECT_URI}&`, REDIRECT_URI.toUpperCase(), 'https://evil.example/']) {
    const page = await get(stock.authorizationUrl({}, wrong));
    expect([page.status, redirectLocation(page)], wrong).toEqual([400, '']);
  }
  const [, second = ''] = TOOL.redirectUris;
  const landed = await stock.logIn(stock.authorizationUrl());
  await expect(stock.exchange(landed, 'v'.repeat(43), second)).rejects.toMatchObject(refusal('invalid_grant'));
  const credentials = { client_id: TOOL.id, client_secret: TOOL.secret, grant_type: 'authorization_code' };
  const without = { ...credentials, code: landed.searchParams.get('code') ?? '' };
  expect(await errorOf(await post(stock.server.token_endpoint ?? '', without))).toEqual([400, 'invalid_grant']);
  expect((await stock.exchange(landed, 'v'.repeat(43))).token_type).toBe('bearer');
  // RFC 6749, 4.1.3: without one in the authorization request, the token request needs none.
  const first = await stock.logIn(stock.authorizationUrl({}, null));
  expect(first.href).toContain(REDIRECT_URI);
  const form = { client_id: TOOL.id, client_secret: TOOL.secret, code: first.searchParams.get('code') ?? '' };
  const response = await post(stock.server.token_endpoint ?? '', { ...form, grant_type: 'authorization_code' });
  expect(response.status).toBe(200);
});

test.for([
  ['registered', []],
  ['any', ['http://192.168.1.7/cb', 'https://hub.example/cb', 'http://localhost:1/cb', 'app://back']],
  ['https', ['https://hub.example/cb']],
  ['https-or-localhost', ['https://hub.example/cb', 'http://localhost:1/cb', 'http://[::1]/cb']],
] as const)('a client without registered redirect URIs may use those of the rule %s', async ([redirectRule, good]) => {
  await using cloud = await startCloud({ redirectRule, clients: [{ id: 'x', secret: 's' }] });
  const stock = await StockClient.discover(cloud);
  const all = [
    'http://192.168.1.7/cb',
    'https://hub.example/cb',
    'http://localhost:1/cb',
    'http://[::1]/cb',
    'app://back',
    'relative',
    'https://x/#f',
    'https://x/\0',
  ];
  const statuses = await Promise.all(
    all.map(async (one) => [one, (await get(stock.authorizationUrl({}, one))).status]),
  );
  const accepted = statuses.filter(([, status]) => status === 200).map(([one]) => one);
  if (redirectRule === 'any') expect(accepted).toEqual([...all.slice(0, 5)]);
  else expect(accepted).toEqual([...good]);
});

test('the authorization response names the issuer, also in an error, unless the setting turns that off', async () => {
  await using cloud = await startCloud();
  const stock = await StockClient.discover(cloud);
  const url = stock.authorizationUrl();
  expect((await stock.logIn(url)).searchParams.get('iss')).toBe(stock.server.issuer);
  const refused = new URL(redirectLocation(await post(url, { action: 'refuse' })));
  expect([refused.searchParams.get('error'), refused.searchParams.get('iss')]).toEqual([
    'access_denied',
    stock.server.issuer,
  ]);
  cloud.emulator.change({ issInResponse: false });
  expect((await stock.logIn(url)).searchParams.has('iss')).toBe(false);
});

test('the codes of the portal and those of the OAuth 2.0 server are not valid at the other token endpoint', async () => {
  await using cloud = await startCloud({ clients: [{ ...HEATER, redirectUris: [REDIRECT_URI] }] });
  const stock = await StockClient.discover(cloud, oauth.ClientSecretPost(HEATER.secret));
  const form = { client_id: HEATER.id, client_secret: HEATER.secret, grant_type: 'authorization_code' };
  const code = (await stock.logIn(stock.authorizationUrl())).searchParams.get('code') ?? '';
  expect((await post(`${cloud.emulator.frontendUrl}/sso/token`, { ...form, code })).status).toBe(400);
  const helper = await obtainCode(cloud.emulator);
  expect((await post(`${cloud.emulator.frontendUrl}/oauth2/token`, { ...form, code: helper })).status).toBe(400);
  expect((await post(`${cloud.emulator.frontendUrl}/sso/token`, { ...form, code: helper })).status).toBe(200);
});

import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import type { Emulator, EmulatorOptions } from '../../../src/emulator/index.ts';
import { ALICE, get, post, redirectLocation } from '../portal-client.ts';
import { REDIRECT_URI, refusal, StockClient, startCloud, TOOL } from './stock-client.ts';

const CLIENT = { client_id: TOOL.id, client_secret: TOOL.secret };
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';

type Body = Readonly<Record<string, unknown>>;

/** Plain requests, which show what a lenient client would hide. */
async function startQuirk(options: EmulatorOptions) {
  const cloud = await startCloud(options);
  const stock = await StockClient.discover(cloud);
  const token = async (form: Record<string, string>, headers: Record<string, string> = {}) => {
    const response = await post(stock.server.token_endpoint ?? '', form, headers);
    return { status: response.status, body: (await response.json()) as Body };
  };
  const code = async (parameters: Record<string, string> = {}) => {
    const landed = await stock.logIn(stock.authorizationUrl(parameters));
    return landed.searchParams.get('code') ?? '';
  };
  const exchange = async (parameters: Record<string, string> = {}, more: Record<string, string> = {}) =>
    token({
      ...CLIENT,
      grant_type: 'authorization_code',
      code: await code(parameters),
      redirect_uri: REDIRECT_URI,
      ...more,
    });
  return { ...cloud, stock, token, exchange, [Symbol.asyncDispose]: () => cloud.emulator.close() };
}

/** The error of an authorization request that is not shown as a page. */
async function authorizationError(url: string): Promise<string | null> {
  return new URL(redirectLocation(await get(url))).searchParams.get('error');
}

async function approve(emulator: Emulator, userCode: string) {
  await emulator.approveDevice({ userCode, user: ALICE.name });
}

test('scopes and requiredScopes: unknown and missing scopes are refused in both flows', async () => {
  await using quirk = await startQuirk({ scopes: 'openid read write', requiredScopes: 'openid' });
  const { stock } = quirk;
  expect(stock.server.scopes_supported).toEqual(['openid', 'read', 'write']);
  for (const scope of ['openid delete', 'read', '']) {
    expect(await authorizationError(stock.authorizationUrl({ scope })), scope).toBe('invalid_scope');
    await expect(stock.beginDevice({ scope }), scope).rejects.toMatchObject(refusal('invalid_scope'));
  }
  expect((await quirk.exchange({ scope: 'openid read' })).body).toMatchObject({ scope: 'openid read' });
});

test('scopeSeparator: commas separate scopes in requests and responses', async () => {
  await using quirk = await startQuirk({ scopeSeparator: 'comma', requiredScopes: 'b' });
  expect((await quirk.exchange({ scope: 'a,b' })).body).toMatchObject({ scope: 'a,b' });
  expect(quirk.emulator.grants()).toMatchObject([{ scope: 'a b' }]);
  expect(await authorizationError(quirk.stock.authorizationUrl({ scope: 'a b' }))).toBe('invalid_scope');
});

test('requiredParameters: each operation needs its own parameters', async () => {
  const requiredParameters =
    'authorize:access_type=offline code:audience=https://api.example/ refresh:client_id={client_id} device:kind poll:kind revoke:why api:apikey={client_id}';
  await using quirk = await startQuirk({ requiredParameters });
  const { stock, token } = quirk;
  expect(await authorizationError(stock.authorizationUrl())).toBe('invalid_request');
  expect(await authorizationError(stock.authorizationUrl({ access_type: 'online' }))).toBe('invalid_request');
  const offline = { access_type: 'offline' };
  expect(await quirk.exchange(offline)).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
  const { body } = await quirk.exchange(offline, { audience: 'https://api.example/' });
  const basic = `Basic ${Buffer.from(`${TOOL.id}:${encodeURIComponent(TOOL.secret)}`).toString('base64')}`;
  const refresh = { grant_type: 'refresh_token', refresh_token: String(body['refresh_token']) };
  expect((await token(refresh, { authorization: basic })).status).toBe(400);
  expect((await token({ ...refresh, ...CLIENT })).status).toBe(200);
  await expect(stock.beginDevice()).rejects.toMatchObject(refusal('invalid_request'));
  const { device_code, user_code } = await stock.beginDevice({ kind: 'x' });
  await approve(quirk.emulator, user_code);
  await expect(stock.poll(device_code)).rejects.toMatchObject(refusal('invalid_request'));
  const tokens = await stock.poll(device_code, { kind: 'x' });
  await expect(stock.revoke(tokens.access_token)).rejects.toMatchObject(refusal('invalid_request'));
  expect((await stock.whoami(tokens.access_token)).status).toBe(400);
  const authorization = `Bearer ${tokens.access_token}`;
  const called = await get(`${quirk.emulator.baseUrl}/api/whoami?apikey=${TOOL.id}`, { authorization });
  expect(called.status).toBe(200);
});

test('requiredHeaders: token requests and API calls need their headers', async () => {
  await using quirk = await startQuirk({ requiredHeaders: 'code:issuer=home%20one api:X-Api-Key={client_id}' });
  const { stock } = quirk;
  expect((await quirk.exchange()).status).toBe(400);
  const landed = await stock.logIn(stock.authorizationUrl());
  const code = landed.searchParams.get('code') ?? '';
  const form = { ...CLIENT, grant_type: 'authorization_code', code, redirect_uri: REDIRECT_URI };
  const { status, body } = await quirk.token(form, { issuer: 'home one' });
  expect(status).toBe(200);
  const authorization = `Bearer ${body['access_token']}`;
  const call = (headers: Record<string, string>) => get(`${quirk.emulator.baseUrl}/api/whoami`, headers);
  expect((await call({ authorization })).status).toBe(400);
  expect((await call({ authorization, 'x-api-key': TOOL.id })).status).toBe(200);
});

test('parametersInQuery: a token request may have its parameters in the query, but none twice', async () => {
  await using quirk = await startQuirk({});
  const { device_code, user_code } = await quirk.stock.beginDevice();
  await approve(quirk.emulator, user_code);
  const query = new URLSearchParams({ ...CLIENT, grant_type: DEVICE_GRANT, device_code });
  const url = `${quirk.stock.server.token_endpoint}?${query}`;
  expect((await fetch(url, { method: 'POST' })).status).toBe(400);
  quirk.emulator.change({ parametersInQuery: true });
  expect((await post(url, { device_code })).status).toBe(400);
  expect((await fetch(url, { method: 'POST' })).status).toBe(200);
  expect(quirk.emulator.requests.at(-1)?.query).toMatchObject({ device_code: expect.stringMatching(/^#/) });
});

test.for([
  ['urn', [DEVICE_GRANT]],
  ['device_code', ['device_code']],
  ['both', [DEVICE_GRANT, 'device_code']],
] as const)('deviceGrantType %s: polls with another grant_type are refused', async ([deviceGrantType, accepted]) => {
  await using quirk = await startQuirk({ deviceGrantType });
  for (const grant_type of [DEVICE_GRANT, 'device_code']) {
    const { device_code } = await quirk.stock.beginDevice();
    const { body } = await quirk.token({ ...CLIENT, grant_type, device_code });
    const isAccepted = (accepted as readonly string[]).includes(grant_type);
    expect(body, grant_type).toMatchObject({ error: isAccepted ? 'authorization_pending' : 'unsupported_grant_type' });
    expect(quirk.stock.server.grant_types_supported?.includes(grant_type)).toBe(isAccepted);
  }
});

test('deviceAuthentication client_id: a device needs no secret, and a wrong one is refused', async () => {
  await using quirk = await startQuirk({ deviceAuthentication: 'client_id' });
  const url = quirk.stock.server.device_authorization_endpoint ?? '';
  const id = { client_id: TOOL.id };
  expect((await post(url, { ...id, client_secret: 'wrong' })).status).toBe(401);
  const begun = (await (await post(url, id)).json()) as { device_code: string; user_code: string };
  await approve(quirk.emulator, begun.user_code);
  const poll = { ...id, grant_type: DEVICE_GRANT, device_code: begun.device_code };
  const { status, body } = await quirk.token(poll);
  expect(status).toBe(200);
  const refresh = { ...id, grant_type: 'refresh_token', refresh_token: String(body['refresh_token']) };
  expect((await quirk.token(refresh)).status).toBe(401);
});

test('refreshAuthentication: a refresh needs only the client_id, or not even that', async () => {
  await using quirk = await startQuirk({ refreshAuthentication: 'client_id' });
  const { token } = quirk;
  const { body } = await quirk.exchange();
  const refresh = (from: Body) => ({ grant_type: 'refresh_token', refresh_token: String(from['refresh_token']) });
  expect((await token(refresh(body))).status).toBe(401);
  const second = await token({ ...refresh(body), client_id: TOOL.id });
  expect(second.status).toBe(200);
  quirk.emulator.change({ refreshAuthentication: 'nothing' });
  expect((await token({ ...refresh(second.body), client_id: TOOL.id, client_secret: 'wrong' })).status).toBe(401);
  expect((await token(refresh(second.body))).status).toBe(200);
  expect(await token({ grant_type: 'refresh_token', refresh_token: 'x' })).toMatchObject({
    status: 400,
    body: { error: 'invalid_grant' },
  });
});

test('revocationAuthentication bearer: a revocation needs a valid access token, and no client', async () => {
  await using quirk = await startQuirk({ revocationAuthentication: 'bearer' });
  const { body } = await quirk.exchange();
  const token = String(body['access_token']);
  const url = quirk.stock.server.revocation_endpoint ?? '';
  const revoke = async (headers: Record<string, string>, client = {}) => {
    return (await post(url, { token, ...client }, headers)).status;
  };
  expect(await revoke({}, { client_id: TOOL.id, client_secret: TOOL.secret })).toBe(401);
  expect(await revoke({ authorization: 'Bearer x' })).toBe(401);
  const whoami = () => get(`${quirk.emulator.baseUrl}/api/whoami`, { authorization: `Bearer ${token}` });
  expect((await whoami()).status).toBe(200);
  expect(await revoke({ authorization: `Bearer ${token}` })).toBe(200);
  expect((await whoami()).status).toBe(401);
  expect(await revoke({ authorization: `Bearer ${token}` })).toBe(401);
});

test('refreshTokenIssue offline: only a login that asks for offline access gets a refresh token', async () => {
  await using quirk = await startQuirk({ refreshTokenIssue: 'offline' });
  expect((await quirk.exchange({ scope: 'read' })).body).not.toHaveProperty('refresh_token');
  expect((await quirk.exchange({ scope: 'offline_access' })).body).toHaveProperty('refresh_token');
  expect((await quirk.exchange({ access_type: 'offline' })).body).toHaveProperty('refresh_token');
  for (const scope of ['read', 'read offline_access']) {
    const { device_code, user_code } = await quirk.stock.beginDevice({ scope });
    await approve(quirk.emulator, user_code);
    expect((await quirk.stock.poll(device_code)).refresh_token === undefined, scope).toBe(scope === 'read');
  }
});

test('token responses take the shape of the settings', async () => {
  await using quirk = await startQuirk({
    refreshRotation: 'never',
    refreshTokenInRefresh: false,
    expiresInType: 'string',
    tokenTypeInResponse: false,
    accountMember: 'userid',
  });
  const { body } = await quirk.exchange({ scope: 'read' });
  expect(body).toEqual({
    access_token: expect.any(String),
    expires_in: '3600',
    refresh_token: expect.any(String),
    scope: 'read',
    userid: 'alice',
  });
  const form = { ...CLIENT, grant_type: 'refresh_token', refresh_token: String(body['refresh_token']) };
  for (let time = 0; time < 2; time += 1) {
    const { status, body: refreshed } = await quirk.token(form);
    expect([status, Object.keys(refreshed).sort()]).toEqual([200, ['access_token', 'expires_in', 'scope', 'userid']]);
  }
});

test('tokenFormat: token responses are a form, and errors stay JSON', async () => {
  await using quirk = await startQuirk({ tokenFormat: 'form' });
  const { stock, emulator } = quirk;
  const landed = await stock.logIn(stock.authorizationUrl({ scope: 'read write' }));
  const form = { ...CLIENT, grant_type: 'authorization_code', redirect_uri: REDIRECT_URI };
  const code = landed.searchParams.get('code') ?? '';
  const response = await post(`${emulator.frontendUrl}/oauth2/token`, { ...form, code });
  expect(response.headers.get('content-type')).toMatch(/^application\/x-www-form-urlencoded/);
  expect(Object.fromEntries(new URLSearchParams(await response.text()))).toEqual({
    access_token: expect.any(String),
    refresh_token: expect.any(String),
    expires_in: '3600',
    token_type: 'bearer',
    scope: 'read write',
  });
  expect(await quirk.token({ ...form, code })).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
});

test('tokenEnvelope: tokens are inside a body, and errors inside a 200', async () => {
  await using quirk = await startQuirk({ tokenEnvelope: 'body', invalidGrantStatus: '401' });
  const { status, body } = await quirk.exchange();
  expect([status, body]).toMatchObject([200, { status: 0, body: { token_type: 'bearer', expires_in: 3600 } }]);
  const wrong = { ...CLIENT, grant_type: 'refresh_token', refresh_token: 'x' };
  const failed = { status: 401, body: {}, error: expect.stringMatching(/^invalid_grant: /) };
  expect(await quirk.token(wrong)).toEqual({ status: 200, body: failed });
  expect(await quirk.token({ ...wrong, client_secret: 'x' })).toMatchObject({ status: 200, body: { status: 401 } });
  expect(await quirk.token(CLIENT)).toMatchObject({ status: 200, body: { status: 503 } });
});

test('errors have the status of the settings, in a web page too', async () => {
  await using quirk = await startQuirk({ invalidGrantStatus: '401', pendingStatus: '403', invalidTokenStatus: '403' });
  const { stock } = quirk;
  await expect(stock.refresh('x')).rejects.toMatchObject(refusal('invalid_grant', 401));
  const { device_code } = await stock.beginDevice();
  await expect(stock.poll(device_code)).rejects.toMatchObject(refusal('authorization_pending', 403));
  expect((await stock.whoami('x')).status).toBe(403);
  quirk.emulator.change({ errorBody: 'html' });
  await expect(stock.refresh('x')).rejects.toMatchObject({ code: oauth.RESPONSE_IS_NOT_JSON });
});

test('refreshesPerMinute: too many refreshes get 429 with Retry-After, and other requests do not count', async () => {
  await using quirk = await startQuirk({ refreshesPerMinute: 2 });
  const { stock } = quirk;
  let { refresh_token = '' } = await stock.obtainTokens();
  for (let time = 0; time < 2; time += 1) ({ refresh_token = '' } = await stock.refresh(refresh_token));
  quirk.clock.pass(20);
  const form = { ...CLIENT, grant_type: 'refresh_token', refresh_token };
  const limited = await post(stock.server.token_endpoint ?? '', form);
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '40']);
  expect((await stock.obtainTokens()).token_type).toBe('bearer');
  quirk.clock.pass(40);
  expect((await stock.refresh(refresh_token)).token_type).toBe('bearer');
});

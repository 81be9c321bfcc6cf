import { expect, test } from 'vitest';
import type { FaultOptions } from '../../src/emulator/index.ts';
import { openApiDocument } from '../../src/emulator/openapi/document.ts';
import { OpenApiConformance } from '../support/openapi-conformance.ts';
import {
  ALICE,
  FORM,
  HEATER,
  obtainCode,
  obtainTokens,
  PUMP,
  refreshTokens,
  requestConfig,
  requestTokens,
  startTestEmulator,
  stateOf,
} from './portal-client.ts';

const DOCUMENT = openApiDocument({ base: 'http://base', frontend: 'http://frontend' }, '0');

test("each response in the emulator's OpenAPI document was returned by its operation, as described", async () => {
  const description = new OpenApiConformance(DOCUMENT);
  const tool = 'http://127.0.0.1:1/tool';
  await using emulator = await startTestEmulator({
    onReuse: 'refuse',
    clients: [{ ...HEATER, redirectUris: [tool], postLogoutRedirectUris: [tool] }, PUMP],
  });
  const { baseUrl, frontendUrl, consoleUrl } = emulator;

  /** Sends a request for an operation, and checks the response against the OpenAPI description. */
  async function ask(operation: string, url: string, init: RequestInit = {}): Promise<Response> {
    const [method = '', path = ''] = operation.split(' ');
    const response = await fetch(url, { method: method.toUpperCase(), redirect: 'manual', ...init });
    expect(await description.differences(path, method, response.clone())).toBe('');
    return response;
  }
  const form = (members: Record<string, string> | string) => ({
    headers: { 'content-type': FORM },
    body: new URLSearchParams(members).toString(),
  });
  const client = { client_id: HEATER.id, client_secret: HEATER.secret };
  const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  /**
   * Sends a request for an operation of the emulator's own API.
   * @param path below `/_emulator/`, may have a query
   * @param parameter the value of the path parameter
   */
  const own = (method: string, path: string, body?: unknown, parameter = '') =>
    ask(
      `${method} /_emulator/${path.split('?')[0]}`,
      consoleUrl + path.replace(/{\w+}/, parameter),
      body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
    );

  const helper = '/external/oauth2helper';
  const configOf = (rest: string) => ask(`post ${helper}/config/{client_id}`, `${baseUrl}${helper}/config/${rest}`);
  await configOf(HEATER.id);
  await configOf(`${HEATER.id}?redirect_url=x`);
  await configOf('nobody');

  const login = { username: ALICE.name, password: ALICE.password };
  const callback = 'http://127.0.0.1:1/callback';
  const set = `get ${helper}/code/set/{client_id}`;
  const get = `get ${helper}/code/get/{client_id}`;
  for (const redirectUrl of [undefined, callback]) {
    const { authorize_url, code_url } = await requestConfig(emulator, redirectUrl);
    await ask('get /sso/authorize', authorize_url);
    await own('get', 'logins');
    await ask(get, code_url);
    await ask('post /sso/authorize', authorize_url, form({ ...login, password: 'wrong' }));
    const loggedIn = await ask('post /sso/authorize', authorize_url, form(login));
    await ask(set, loggedIn.headers.get('location') ?? '');
    await ask(get, code_url);
  }
  const refused = await requestConfig(emulator);
  await ask('post /sso/authorize', refused.authorize_url, form({ action: 'other' }));
  const denied = await ask('post /sso/authorize', refused.authorize_url, form({ action: 'refuse' }));
  await ask(set, denied.headers.get('location') ?? '');
  await ask(set, `${baseUrl}${helper}/code/set/nobody`);
  await ask(set, `${baseUrl}${helper}/code/set/${HEATER.id}`);
  await ask('get /sso/authorize', `${frontendUrl}/sso/authorize`);
  await ask('post /sso/authorize', `${frontendUrl}/sso/authorize`, form(login));
  emulator.change({ autoLogin: true });
  await ask('get /sso/authorize', (await requestConfig(emulator)).authorize_url);

  const token = (members: Record<string, string> | string, headers: Record<string, string> = {}) =>
    ask('post /sso/token', `${frontendUrl}/sso/token`, {
      ...form(members),
      headers: { 'content-type': FORM, ...headers },
    });
  const code = await obtainCode(emulator);
  const exchange = { ...client, grant_type: 'authorization_code', code };
  const first = (await (await token(exchange)).json()) as { access_token: string; refresh_token: string };
  await token({ ...exchange, code: await obtainCode(emulator), scope: 'Monitoring' });
  await token({ ...client, grant_type: 'refresh_token', refresh_token: first.refresh_token });
  await token({ ...client, grant_type: 'refresh_token', refresh_token: first.refresh_token });
  await token({ ...client, grant_type: 'password' });
  await token({ ...exchange, code: await obtainCode(emulator), scope: '"' });
  await token({ ...exchange, client_secret: 'wrong' });
  await token({ grant_type: 'refresh_token' }, { authorization: 'Basic eDp5' });
  await token('grant_type=a&grant_type=b');
  const revocation = (members: Record<string, string>, headers: Record<string, string> = {}) =>
    ask('post /oauth2/revoke', `${baseUrl}/oauth2/revoke`, {
      ...form(members),
      headers: { 'content-type': FORM, ...headers },
    });
  await revocation({ ...client, token: 'unknown', token_type_hint: 'access_token' });
  await revocation(client);
  await revocation({ token: 'unknown' }, { authorization: 'Basic eDp5' });
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    await ask(`get /.well-known/${name}`, `${frontendUrl}/.well-known/${name}`);
  }
  await ask('get /oauth2/jwks', `${frontendUrl}/oauth2/jwks`);
  for (const origin of [baseUrl, frontendUrl]) await ask('get /', `${origin}/`);
  const oauth2 = (path: string, members: Record<string, string>, headers: Record<string, string> = {}) =>
    ask(`post /oauth2/${path}`, `${frontendUrl}/oauth2/${path}`, {
      ...form(members),
      headers: { 'content-type': FORM, ...headers },
    });
  const oauth2Page = async (path: string, query: Record<string, string>) => {
    const url = `${frontendUrl}/oauth2/${path}?${new URLSearchParams(query)}`;
    await ask(`get /oauth2/${path}`, url);
    await ask(`post /oauth2/${path}`, url, form({ ...login, password: 'wrong' }));
    await ask(`post /oauth2/${path}`, url, form({ action: 'other' }));
    return ask(`post /oauth2/${path}`, url, form(login));
  };
  emulator.change({ autoLogin: false });
  const wanted = { response_type: 'code', client_id: HEATER.id, redirect_uri: tool };
  const landed = new URL((await oauth2Page('authorize', wanted)).headers.get('location') ?? '');
  await oauth2Page('authorize', { ...wanted, redirect_uri: 'http://127.0.0.1:1/other' });
  await ask(
    'get /oauth2/authorize',
    `${frontendUrl}/oauth2/authorize?${new URLSearchParams({ ...wanted, scope: '"' })}`,
  );
  const oauth2Code = { ...client, grant_type: 'authorization_code', code: landed.searchParams.get('code') ?? '' };
  await oauth2('token', { ...oauth2Code, redirect_uri: tool });
  await oauth2('token', oauth2Code);
  await oauth2('token', { grant_type: 'refresh_token' }, { authorization: 'Basic eDp5' });
  const ofClient = await oauth2('token', { ...client, grant_type: 'client_credentials', scope: 'openid' });
  const { access_token } = (await ofClient.json()) as { access_token: string };
  await oauth2('par', { ...client, response_type: 'code', redirect_uri: tool });
  await oauth2('par', client);
  await oauth2('par', {}, { authorization: 'Basic eDp5' });
  await oauth2('introspect', { ...client, token: access_token });
  await oauth2('introspect', { ...client, token: 'unknown' });
  await oauth2('introspect', client);
  await oauth2('introspect', { token: 'unknown' }, { authorization: 'Basic eDp5' });
  for (const path of ['', '/api/whoami']) {
    const metadata = `/.well-known/oauth-protected-resource${path}`;
    await ask(`get ${metadata}`, `${baseUrl}${metadata}`);
  }
  const json = (body: unknown, headers: Record<string, string> = {}) => ({
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const metadata = { redirect_uris: [tool] };
  const register = (body: unknown) => ask('post /oauth2/register', `${frontendUrl}/oauth2/register`, json(body));
  await register({});
  const registered = (await (await register(metadata)).json()) as Record<string, string>;
  const { registration_client_uri: uri = '', registration_access_token: ownToken = '' } = registered;
  const managed = '/oauth2/register/{registered}';
  for (const token of ['wrong', ownToken]) {
    const { headers } = bearer(token);
    await ask(`get ${managed}`, uri, { headers });
    await ask(`put ${managed}`, uri, json(metadata, headers));
    await ask(`put ${managed}`, uri, json({}, headers));
    await ask(`delete ${managed}`, uri, { headers });
  }
  emulator.change({ registration: false });
  await register(metadata);
  for (const method of ['get', 'post']) {
    const userinfo = (init: RequestInit = {}) =>
      ask(`${method} /oauth2/userinfo`, `${frontendUrl}/oauth2/userinfo`, init);
    await userinfo(bearer(access_token));
    await userinfo(bearer(first.access_token));
    await userinfo({ headers: { authorization: 'Bearer a b' } });
    await userinfo(bearer('unknown'));
  }
  const goodbye = { client_id: HEATER.id, post_logout_redirect_uri: tool };
  for (const members of [{}, goodbye, { client_id: 'nobody', post_logout_redirect_uri: tool }]) {
    const address = `${frontendUrl}/oauth2/logout?${new URLSearchParams(members)}`;
    await ask('get /oauth2/logout', address);
    await ask('post /oauth2/logout', address, form({ action: 'logout' }));
  }
  await oauth2('device_authorization', { ...client, scope: '"' });
  await oauth2('device_authorization', {}, { authorization: 'Basic eDp5' });
  const device = (await (await oauth2('device_authorization', client)).json()) as Record<string, string>;
  const { device_code = '', user_code = '' } = device;
  const poll = { ...client, grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code };
  await oauth2('token', poll);
  await oauth2('token', poll);
  await own('get', 'device');
  await oauth2Page('device', { user_code });
  await oauth2Page('device', { user_code });
  const second = (await (await oauth2('device_authorization', client)).json()) as Record<string, string>;
  await own('post', 'device', { user_code: second['user_code'], user: ALICE.name });
  await own('post', 'device', { user_code: second['user_code'], deny: true });
  emulator.change({ pendingStatus: '403', invalidTokenStatus: '403', tokenEnvelope: 'body', expiresInType: 'string' });
  const third = (await (await oauth2('device_authorization', client)).json()) as Record<string, string>;
  await oauth2('token', { ...poll, device_code: third['device_code'] ?? '' });
  await oauth2('token', { ...poll, device_code: second['device_code'] ?? '' });
  emulator.change({ tokenEnvelope: 'none' });
  const fourth = (await (await oauth2('device_authorization', client)).json()) as Record<string, string>;
  await oauth2('token', { ...poll, device_code: fourth['device_code'] ?? '' });
  await ask('get /api/whoami', `${baseUrl}/api/whoami`, bearer('unknown'));
  emulator.change({ pendingStatus: '400', invalidTokenStatus: '401', expiresInType: 'number' });

  await ask('get /api/whoami', `${baseUrl}/api/whoami`);
  await ask('get /api/whoami', `${baseUrl}/api/whoami`, bearer('unknown'));
  await ask('get /api/whoami', `${baseUrl}/api/whoami`, bearer(first.access_token));
  await ask('get /api/whoami', `${baseUrl}/api/whoami`, { headers: { authorization: 'Bearer a b' } });

  await own('post', 'login', { state: stateOf((await requestConfig(emulator)).code_url), user: ALICE.name });
  await own('post', 'login', { state: 1 });

  // Causes each kind of finding once.
  await requestTokens(emulator, exchange);
  const { refresh_token } = await obtainTokens(emulator);
  emulator.addFault({ kind: 'delay', endpoint: 'token', seconds: 0.2, commit: true });
  await Promise.all([refreshTokens(emulator, refresh_token), refreshTokens(emulator, refresh_token)]);
  const findings = (await (await own('get', 'findings')).json()) as Record<string, unknown[]>;
  expect(Object.entries(findings).filter(([, list]) => list.length === 0)).toEqual([]);

  await own('get', 'settings');
  await own('patch', 'settings', { refresh_grace: 1 });
  await own('patch', 'settings', { refresh_lifetime: 5000, grant_lifetime: 5000, refuse_redirect_urls: '^ftp:' });
  await own('patch', 'settings', { refresh_grace: -1 });
  await own('post', 'token', { sub: 'bob' });
  await own('post', 'token', ['bob']);
  await own('post', 'keys/rotate', {});
  await own('post', 'keys/rotate', { all: true });
  await own('get', 'clock');
  await own('post', 'clock', { advance: 0.25 });
  await own('post', 'clock', { advance: -60 });

  const [grant] = emulator.grants();
  await own('get', 'grants');
  const revoke = (token: string, id = grant?.id) => own('post', 'grants/{grant_id}/revoke', { what: token }, id);
  await revoke('access_tokens');
  await revoke('grant');
  await revoke('everything');
  await revoke('grant', 'nobody');
  await own('get', 'grants');

  for (const fault of FAULTS) await own('post', 'faults', fault);
  await own('post', 'faults', { kind: 'hang' });
  await own('get', 'faults');
  await own('delete', 'faults/{id}', undefined, '1');
  await own('delete', 'faults/{id}', undefined, '1000');
  await own('delete', 'faults');
  await own('get', 'faults');

  await own('get', 'requests');
  await own('get', 'requests?since=2');
  await own('get', 'requests?since=x');
  await own('get', 'openapi.json');
  const page = await (await own('get', '')).text();
  await own('get', 'console.css');
  await own('get', 'console/{file}', undefined, /console\/(main\.[jt]s)/.exec(page)?.[1]);
  await own('get', 'console/{file}', undefined, 'nothing.ts');

  // Streams do not end, so only the start is checked.
  const leaving = new AbortController();
  for (let status = 200; status === 200; ) {
    const events = await fetch(`${consoleUrl}events`, { signal: leaving.signal });
    status = events.status;
    const seen = status === 200 ? new Response('.', { status, headers: events.headers }) : events;
    expect(await description.differences('/_emulator/events', 'get', seen)).toBe('');
  }
  leaving.abort();

  await own('post', 'reset', {});
  await own('post', 'reset', { all: true });
  for (const empty of ['findings', 'grants', 'logins', 'requests', 'faults']) await own('get', empty);

  expect(description.unseen()).toEqual([]);
});

const endpoint = 'whoami';

/** One fault of each kind that works over plain HTTP. */
const FAULTS: readonly ({ readonly kind: FaultOptions['kind'] } & Readonly<Record<string, unknown>>)[] = [
  { kind: 'status', endpoint, status: 503, headers: { 'retry-after': '1' }, body: '{}' },
  { kind: 'redirect', endpoint, location: 'http://127.0.0.1/' },
  { kind: 'not_json', endpoint, client: HEATER.id },
  { kind: 'delay', endpoint, seconds: 0.5 },
  { kind: 'hang', endpoint: 'token', grant_type: 'refresh_token' },
  { kind: 'reset_before', endpoint: '*' },
  { kind: 'commit_then_drop', endpoint, times: null, every: 2, probability: 0.5 },
  { kind: 'truncate', endpoint, bytes: 0 },
  { kind: 'slow_body', endpoint, bytes_per_second: 1 },
  { kind: 'content_type', endpoint, content_type: 'text/plain' },
  { kind: 'change_members', endpoint, members: '{"expires_in":0}' },
  { kind: 'oversize', endpoint, bytes: 1000 },
  { kind: 'wrong_date', endpoint, offset: -1.5 },
  { kind: 'origin_down', origin: 'frontend', seconds: 5 },
];

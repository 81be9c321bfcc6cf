import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, test } from 'vitest';
import type { CredentialsResponse } from '../../src/control/messages.ts';
import { Failure } from '../../src/core/failure.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { openApiDocument } from '../../src/lan/openapi/document.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { HubProcess } from '../support/hub-process.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { rememberSecrets } from '../support/logs.ts';
import { OpenApiConformance } from '../support/openapi-conformance.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, FORM, HubClient, type HubResponse, parseJsonBody, sentBrowser } from './hub-client.ts';

interface Described {
  readonly paths: Readonly<
    Record<string, Record<string, { responses?: Record<string, { content?: Record<string, { schema?: Shape }> }> }>>
  >;
}

interface Shape {
  readonly properties?: { readonly error?: { readonly enum?: readonly string[] } };
}

const DOCUMENT = openApiDocument('0');
const description = new OpenApiConformance(DOCUMENT);
/** The errors that occurred: `POST /oauth/token 400 invalid_grant`. */
const errors = new Set<string>();

const keys = generateKeyPairSync('ed25519');
let emulator: Emulator;
let hub: HubProcess;
let client: HubClient;
let heater: CredentialsResponse;

setUpOnce(async (parts) => {
  emulator = parts.use(await startPortal());
  const toml = '[appliances.signer]\nclient_id = "signer"\njwks_file = "signer.jwks"\n';
  hub = parts.use(await HubProcess.prepare({ emulator, here: true, toml, lan: 'mdns = false' }));
  const jwks = JSON.stringify({ keys: [keys.publicKey.export({ format: 'jwk' })] });
  writeFileSync(join(hub.directory, 'signer.jwks'), jwks, { mode: 0o600 });
  // Twice: a hub that has just started cannot know whether its earlier process accepted an assertion from before its
  // start.
  await hub.launch();
  await hub.kill('SIGTERM');
  await hub.launch();
  client = parts.use(await HubClient.of(hub));
  heater = await hub.addAppliance('heater', 'Monitoring');
});

/** Checks a response against the description of the operation, such as `post /oauth/token`. */
async function checked(operation: string, response: HubResponse): Promise<HubResponse> {
  const [method = '', path = ''] = operation.split(' ');
  const { status, headers, text } = response;
  const described = {
    status,
    text: async () => text,
    headers: { get: (name: string) => String(headers[name] ?? ''), has: (name: string) => headers[name] !== undefined },
  };
  expect(await description.differences(path, method, described)).toBe('');
  if (status >= 400 && text.startsWith('{')) errors.add(`${operation} ${status} ${parseJsonBody(response)['error']}`);
  return response;
}

async function post(
  path: string,
  form: Record<string, string> | string,
  headers: Record<string, string> = {},
): Promise<HubResponse> {
  const body = typeof form === 'string' ? form : new URLSearchParams(form).toString();
  return checked(
    `post ${path}`,
    await client.https(path, { method: 'POST', headers: { 'content-type': FORM, ...headers }, body }),
  );
}

async function register(metadata: unknown, token?: string): Promise<HubResponse> {
  const headers = {
    'content-type': 'application/json',
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
  };
  const body = typeof metadata === 'string' ? metadata : JSON.stringify(metadata);
  return checked('post /oauth/register', await client.https('/oauth/register', { method: 'POST', headers, body }));
}

const own = () => ({ authorization: basicAuthorization(heater) });
const begin = () => post('/oauth/device_authorization', {}, own());
const poll = (started: HubResponse) =>
  post('/oauth/token', {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: String(parseJsonBody(started)['device_code']),
    client_id: heater.client_id,
    client_secret: heater.client_secret,
  });
const token = (form: Record<string, string> = {}) =>
  post('/oauth/token', { grant_type: 'client_credentials', ...form }, own());

/** Opens the link of a device flow and logs in, or denies access. */
async function logIn(started: HubResponse, deny = false): Promise<void> {
  const opened = await client.post('/pair', { user_code: String(parseJsonBody(started)['user_code']) });
  const state = new URL(String(opened.headers['location'])).searchParams.get('state') ?? '';
  const { location } = await emulator.login(deny ? { state, deny } : { state, user: 'demo' });
  const { pathname, search } = new URL(location);
  await client.http(pathname + search, { headers: sentBrowser(opened) });
}

/** @param age seconds since the assertion was issued */
function assertion(age: number): Record<string, string> {
  const iat = Math.floor(Date.now() / 1000) - age;
  const aud = `https://127.0.0.1:${hub.httpsPort}`;
  const claims = { iss: 'signer', sub: 'signer', aud, jti: crypto.randomUUID(), iat, exp: iat + 60 };
  const [head, payload] = [{ alg: 'EdDSA' }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const signature = sign(null, Buffer.from(`${head}.${payload}`), keys.privateKey).toString('base64url');
  return {
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: `${head}.${payload}.${signature}`,
  };
}

const ENDPOINTS = ['/oauth/token', '/oauth/device_authorization', '/oauth/revoke', '/oauth/connections'];

test("each response in the hub's OpenAPI document was returned by its operation, with every error, as described", async () => {
  const metadata = '/.well-known/oauth-authorization-server';
  await checked(`get ${metadata}`, await client.https(metadata));

  await token();
  await token({ grant_type: 'password' });
  await post('/oauth/connections', {}, own());
  for (const path of ENDPOINTS) {
    await post(path, 'scope=a&scope=b', own());
    await post(path, `scope=${'x'.repeat(17_000)}`, own());
    await post(path, {}, { authorization: 'Basic eDp5' });
    const address = `https://127.0.0.1:${hub.httpsPort}/connections`;
    await post(path, `resource=${address}/a&resource=${address}/b`, own());
    await post(path, { ...assertion(55), token: 'x', grant_type: 'client_credentials' });
  }

  await hub.ask((control) => control.request('openRegistration', { open_for: 60 }));
  const waiting = parseJsonBody(await register({ client_name: 'Waiting' }));
  await hub.ask((control) => control.request('openRegistration', { open_for: 0 }));
  const { client_id, client_secret } = waiting as { client_id: string; client_secret: string };
  rememberSecrets([client_secret]);
  for (const path of ENDPOINTS) await post(path, { client_id, client_secret, grant_type: 'client_credentials' });
  for (const jwks of [undefined, { keys: [keys.publicKey.export({ format: 'jwk' })] }]) {
    const { token: invited } = await hub.ask((control) =>
      control.request('invite', { name: null, scope: null, portal: null, connection: null, ttl: 3600 }),
    );
    rememberSecrets([invited]);
    const response = await register(
      { client_name: 'Invited', software_id: 'x', scope: 'A', ...(jwks && { jwks }) },
      invited,
    );
    const secret = parseJsonBody(response)['client_secret'];
    if (typeof secret === 'string') rememberSecrets([secret]);
  }
  await register({});
  await register('{');
  await register({ jwks: { keys: [{ kty: 'oct', k: 'AA' }] } });
  await register(JSON.stringify({ client_name: 'x'.repeat(17_000) }));
  await register({}, 'wrong');

  const replaced = await begin();
  const refused = await begin();
  await poll(replaced);
  await poll(refused);
  await poll(refused);
  await logIn(refused, true);
  await poll(refused);
  const started = await begin();
  await post('/oauth/device_authorization', { scope: 'Other' }, own());
  await logIn(started);
  const paired = parseJsonBody(await poll(started));
  rememberSecrets([String(paired['refresh_token'])]);

  await token({ scope: 'Other' });
  await token();
  await post('/oauth/token', { grant_type: 'refresh_token', refresh_token: String(paired['refresh_token']) }, own());
  emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, times: null, headers: { 'retry-after': '60' } });
  await post('/oauth/revoke', { token: String(paired['access_token']) }, own());
  await token();
  await emulator.clearFaults();

  // Rate limits come last: afterwards every request from this address is rejected.
  await exhaustRateLimit(begin);
  await exhaustRateLimit(() => register({}));
  for (const path of ENDPOINTS) await exhaustRateLimit(() => post(path, { client_id: 'x', client_secret: 'y' }));
  await unwritableStore();

  expect(description.unseen()).toEqual([]);
  expect(describedErrors().filter((error) => !errors.has(error))).toEqual([]);
});

async function exhaustRateLimit(send: () => Promise<HubResponse>): Promise<void> {
  for (let attempt = 0; attempt < 30; attempt++) if ((await send()).status === 429) return;
}

/** The LAN server of a hub that can't write its store. */
async function unwritableStore(): Promise<void> {
  await using lan = await LanServerHarness.start();
  const fail = async () => {
    throw new Failure('store_unwritable', 'planted');
  };
  lan.home.add('lamp', { kind: 'secret', hash: sha256('a-secret') });
  Object.assign(lan.home.service, { isInvite: () => true, register: fail, beginDeviceFlow: fail });
  const lamp = basicAuthorization({ client_id: 'lamp', client_secret: 'a-secret' });
  for (const [path, type, authorization] of [
    ['/oauth/register', 'application/json', 'Bearer x'],
    ['/oauth/device_authorization', FORM, lamp],
  ] as const) {
    const { statusCode, headers, body } = await request(`https://127.0.0.1:${lan.server.httpsPort}${path}`, {
      method: 'POST',
      dispatcher: lan.agent,
      headers: { 'content-type': type, authorization },
      body: type === FORM ? '' : '{}',
    });
    await checked(`post ${path}`, { status: statusCode, headers, text: await body.text() });
    expect(statusCode).toBe(503);
    expect(Number(headers['retry-after'])).toBeGreaterThan(0);
  }
}

/** The entries of `errors` that this description lists. */
function describedErrors(): string[] {
  return Object.entries((DOCUMENT as unknown as Described).paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { responses = {} }]) =>
      Object.entries(responses).flatMap(([status, { content = {} }]) =>
        (content['application/json']?.schema?.properties?.error?.enum ?? []).map(
          (error) => `${method} ${path} ${status} ${error}`,
        ),
      ),
    ),
  );
}

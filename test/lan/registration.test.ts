import { Agent, request } from 'undici';
import { describe, expect, it } from 'vitest';
import type { InviteResponse } from '../../src/control/messages.ts';
import type { InviteRequest } from '../../src/core/administration.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { basicAuthorization, HubClient, type HubResponse, parseJsonBody } from './hub-client.ts';
import { expectError as expectClientError } from './oauth-error.ts';

const JSON_TYPE = 'application/json';

let hub: HubProcess;
let client: HubClient;

setUpOnce(async (parts) => {
  const emulator = parts.use(await startPortal());
  hub = parts.use(await HubProcess.start({ emulator, here: true }));
  client = parts.use(await HubClient.of(hub));
});

/** Addresses of this machine's loopback network: each device has its own limits. */
let devices = 0;
function anotherDevice(): string {
  devices += 1;
  return `127.1.${devices >> 8}.${devices & 255}`;
}

interface Attempt {
  readonly token?: string;
  /** The device's address. */
  readonly from?: string;
  readonly headers?: Record<string, string>;
}

/** Registers; a string as `metadata` is the body itself. */
async function register(
  metadata: unknown,
  { token, from = anotherDevice(), headers }: Attempt = {},
): Promise<HubResponse> {
  await using parts = new AsyncDisposableStack();
  const agent = parts.adopt(new Agent({ connect: { ca: client.ca }, localAddress: from }), (open) => open.destroy());
  const response = await request(`https://127.0.0.1:${hub.httpsPort}/oauth/register`, {
    method: 'POST',
    dispatcher: agent,
    headers: {
      'content-type': JSON_TYPE,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    body: typeof metadata === 'string' ? metadata : JSON.stringify(metadata),
  });
  const text = await response.body.text();
  if (response.statusCode === 201) rememberSecrets([String(JSON.parse(text)['client_secret'] ?? token)]);
  return { status: response.statusCode, headers: response.headers, text };
}

async function invite(request: Partial<InviteRequest> = {}): Promise<InviteResponse> {
  const made = await hub.ask((control) =>
    control.request('invite', { name: null, scope: null, portal: null, connection: null, ttl: 3600, ...request }),
  );
  rememberSecrets([made.token]);
  return made;
}

/** Checks what RFC 7591, 3.2.2 and RFC 6750, 3 require of every error. */
function expectError(response: HubResponse, status: number, error: string, description: RegExp): void {
  expect({ status: response.status, ...parseJsonBody(response) }).toEqual({
    status,
    error,
    error_description: expect.stringMatching(/^[\x20-\x21\x23-\x5b\x5d-\x7e]{1,400}$/),
  });
  expect(parseJsonBody(response)['error_description']).toMatch(description);
  expect(response.headers).toMatchObject({
    'cache-control': 'no-store',
    'content-type': expect.stringMatching(/json/),
  });
  expect(String(response.headers['www-authenticate'] ?? '')).toMatch(
    status === 401 ? /^Bearer realm="latchkey"/ : /^$/,
  );
}

describe('closed registration', () => {
  it('the hub tells an uninvited appliance how it can be registered while registration is closed', async () => {
    const response = await register({ client_name: 'Wallbox' });
    expectError(response, 401, 'invalid_token', /latchkey invite.*latchkey registration open/);
    expect(response.headers['www-authenticate']).toBe('Bearer realm="latchkey"');
  });

  it.for([
    ['wrong', { token: 'x'.repeat(43) }],
    ['a client authentication', { headers: { authorization: 'Basic eDp5' } }],
    ['not a token', { headers: { authorization: 'Bearer a b "c' } }],
  ] satisfies [string, Attempt][])(
    'the hub refuses an initial access token that is %s while registration is closed',
    async ([, attempt]) => {
      const response = await register({ client_name: 'Wallbox' }, attempt);
      expectError(response, 401, 'invalid_token', /wrong, was used or has expired.*latchkey invite/);
      expect(response.headers['www-authenticate']).toContain('error="invalid_token"');
    },
  );
});

describe('registration with an invite', () => {
  it('an invited appliance is registered at once, with a secret, the CA pin and the granted scope', async () => {
    const { token, ca_fingerprint, registration_endpoint, ...rest } = await invite();
    expect(rest).toEqual({ name: null, scope: null, expires_in: 3600 });
    expect(registration_endpoint).toBe(`https://127.0.0.1:${hub.httpsPort}/oauth/register`);
    const response = await register(
      { client_name: 'Heat Pump', scope: 'Monitoring', software_id: 'acme/heat 1.2', redirect_uris: ['x'], hello: {} },
      { token },
    );
    expect(response.status).toBe(201);
    expect(response.headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' });
    expect(parseJsonBody(response)).toEqual({
      client_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      client_secret: expect.stringMatching(/^[\w-]{43}$/),
      client_secret_expires_at: 0,
      client_name: 'heat-pump',
      scope: 'Monitoring',
      software_id: 'acme/heat 1.2',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['client_credentials', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: [],
      ca_fingerprint,
    });
    expect((await hub.authority()).fingerprint).toBe(ca_fingerprint);
  });

  it('an invite is used up when its appliance authenticates, even with an invalid request', async () => {
    const { token } = await invite();
    const from = anotherDevice();
    const { client_id, client_secret } = parseJsonBody(await register({ client_name: 'Hasty' }, { token, from }));
    const authorization = basicAuthorization({ client_id: String(client_id), client_secret: String(client_secret) });
    expectClientError(await client.token({}, { authorization }), 400, 'invalid_request');
    expectError(
      await register({ client_name: 'Hasty' }, { token, from }),
      401,
      'invalid_token',
      /was used or has expired/,
    );
  });

  it('an invited appliance can register from an address that has just been throttled', async () => {
    const from = anotherDevice();
    const { token } = await invite();
    const attempts = await Promise.all(Array.from({ length: 12 }, () => register({}, { from })));
    expect(attempts.filter(({ status }) => status === 401)).toHaveLength(10);
    const limited = attempts.filter(({ status }) => status === 429);
    expect(limited).toHaveLength(2);
    for (const response of limited) {
      expectError(response, 429, 'temporarily_unavailable', /too many registrations from this address/);
      expect(Number(response.headers['retry-after'])).toBeGreaterThan(0);
      expect(Number(response.headers['retry-after'])).toBeLessThanOrEqual(60);
    }
    expect(await register({}, { from, token: 'x'.repeat(43) })).toMatchObject({ status: 429 });
    expect(await register({}, { from, token })).toMatchObject({ status: 201 });
  });
});

describe('open registration', () => {
  it('an appliance that registers without an invite gets no token until it is approved, and removal rejects it', async () => {
    await hub.ask((control) => control.request('openRegistration', { open_for: 120 }));
    const [lamp, otherLamp] = [
      await register({
        client_name: 'Lamp 💡',
        software_id: 'lamp/1',
        token_endpoint_auth_method: 'client_secret_post',
      }),
      await register({ client_name: 'Lamp' }),
    ];
    await hub.ask((control) => control.request('openRegistration', { open_for: 0 }));
    expectError(await register({}), 401, 'invalid_token', /registration is closed/);
    expect([lamp, otherLamp].map((response) => parseJsonBody(response)['client_name'])).toEqual(['lamp', 'lamp-2']);
    expect(parseJsonBody(lamp)['token_endpoint_auth_method']).toBe('client_secret_post');
    const [code, otherCode] = [lamp, otherLamp].map((response) => String(parseJsonBody(response)['comparison_code']));
    expect([code, otherCode]).toEqual(Array(2).fill(expect.stringMatching(/^[B-Z]{3}-[B-Z]{3}$/)));
    expect(code).not.toBe(otherCode);

    const { client_id, client_secret } = parseJsonBody(lamp) as { client_id: string; client_secret: string };
    const ask = (path: string, form: Record<string, string>) =>
      client.https(path, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ ...form, client_id, client_secret }).toString(),
      });
    for (const [path, form] of [
      ['/oauth/token', { grant_type: 'client_credentials' }],
      ['/oauth/device_authorization', {}],
      ['/oauth/revoke', { token: 'x' }],
    ] as const) {
      const response = await ask(path, form);
      expect({ status: response.status, ...parseJsonBody(response) }).toMatchObject({
        status: 400,
        error: 'unauthorized_client',
      });
    }
    expect(await hub.appliance('lamp')).toMatchObject({
      state: 'unpaired',
      waiting_for_approval: {
        since: expect.stringMatching(/Z$/),
        software_id: 'lamp/1',
        comparison_code: code,
        address: expect.stringMatching(/^127\.1\./),
      },
    });
    const wrongCode = hub.ask((control) => control.request('approveAppliance', { name: 'lamp', code: `${otherCode}` }));
    await expect(wrongCode).rejects.toThrow('the code of lamp differs');
    for (const command of ['pair', 'token'] as const) {
      const result = hub.ask<unknown>((control) => control.request(command, { name: 'lamp' }));
      await expect(result).rejects.toThrow(/Lamp 💡 is not approved yet.*appliance approve lamp/);
    }
    await hub.ask((control) => control.request('approveAppliance', { name: 'lamp' }));
    await hub.ask((control) => control.request('removeAppliance', { name: 'lamp-2' }));
    expect(parseJsonBody(await ask('/oauth/token', { grant_type: 'client_credentials' }))['error']).toBe(
      'invalid_grant',
    );
  });

  it('five appliances from one device can wait for approval', async () => {
    await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
    const from = anotherDevice();
    const responses = [];
    for (let round = 0; round < 6; round++) responses.push(await register({ client_name: 'Many' }, { from }));
    expect(responses.map(({ status }) => status)).toEqual([...Array(5).fill(201), 429]);
    const [last] = responses.slice(-1);
    if (last === undefined) throw new Error('nobody came');
    expectError(last, 429, 'temporarily_unavailable', /wait for approval/);
    expect(Number(last.headers['retry-after'])).toBeGreaterThan(0);
  });
});

/** Of RFC 7515, appendix A.3. */
const PUBLIC_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
};

const REFUSED: readonly (readonly [metadata: unknown, says: RegExp])[] = [
  [null, /JSON object/],
  [{ client_name: ['Wallbox'] }, /^client_name: must be a string/],
  [{ scope: 'Überwachung' }, /the scope .* has a character/],
  [{ scope: 'x'.repeat(1001) }, /1001 characters: use at most 1000/],
  [{ software_id: 'a\r\nX-Evil: 1' }, /^software_id: must be 1 to 200 printable/],
  [{ software_id: '\u202eevil' }, /^software_id/],
  [{ software_id: 'x'.repeat(201) }, /^software_id/],
  [{ grant_types: ['authorization_code', 'password'] }, /^grant_types: the hub supports none.*client_credentials/],
  [{ token_endpoint_auth_method: 'none' }, /^token_endpoint_auth_method: .*must authenticate/],
  [{ token_endpoint_auth_method: 'private_key_jwt' }, /^jwks: private_key_jwt requires public keys/],
  [{ jwks: { keys: [PUBLIC_KEY] }, token_endpoint_auth_method: 'client_secret_basic' }, /^jwks: not allowed with/],
  [{ jwks_uri: 'https://appliance.example/keys' }, /^jwks_uri: not supported.*send the keys in jwks/],
  [{ jwks: 'x' }, /^jwks: must be a JWK Set/],
  [{ jwks: { keys: [{ ...PUBLIC_KEY, d: 'd' }] } }, /^jwks: key 1 contains the private key/],
];

describe('invalid client metadata', () => {
  it.for(REFUSED.map((row) => [JSON.stringify(row[0]).slice(0, 60), ...row] as const))(
    'the hub refuses the client metadata %s and says what to change',
    async ([, metadata, description]) => {
      const { token } = await sharedInvite();
      expectError(await register(metadata, { token }), 400, 'invalid_client_metadata', description);
    },
  );

  it('an invite stays valid after requests with invalid client metadata', async () => {
    const { token } = await sharedInvite();
    const metadata = { client_name: `${'Very long '.repeat(1000)}\r\nSet-Cookie: a=b`, scope: null, jwks: null };
    const response = await register(metadata, { token });
    expect(response.status).toBe(201);
    expect(parseJsonBody(response)['client_name']).toBe(
      'very-long-very-long-very-long-very-long-very-long-very-long-ver',
    );
    expect(response.headers).not.toHaveProperty('set-cookie');
    expect(parseJsonBody(response)).not.toHaveProperty('scope');
  });
});

let shared: Promise<InviteResponse> | undefined;
/** One invite for all requests that are refused before they use it. */
function sharedInvite(): Promise<InviteResponse> {
  shared ??= invite();
  return shared;
}

describe('malformed registration requests', () => {
  it.for<[what: string, body: string, type: string, status: number, says: RegExp]>([
    ['a form', 'client_name=x', 'application/x-www-form-urlencoded', 400, /application\/json/],
    ['a content type that is none', '{}', 'json;;', 400, /application\/json/],
    ['no JSON', '{"client_name":', JSON_TYPE, 400, /not valid JSON/],
    ['17 kB', JSON.stringify({ client_name: 'x'.repeat(17_000) }), JSON_TYPE, 413, /too large/],
    ['nesting without end', '['.repeat(8000), JSON_TYPE, 400, /not valid JSON/],
  ])('the registration endpoint refuses %s as a request body', async ([, body, type, status, description]) => {
    expectError(await register(body, { headers: { 'content-type': type } }), status, 'invalid_request', description);
  });

  it('the registration endpoint answers 405 to another method, and does not exist over plain HTTP', async () => {
    const wrong = await client.https('/oauth/register');
    expect({ status: wrong.status, allow: wrong.headers['allow'] }).toEqual({ status: 405, allow: 'POST' });
    const body = '{}';
    expect(
      await client.http('/oauth/register', { method: 'POST', headers: { 'content-type': JSON_TYPE }, body }),
    ).toMatchObject({ status: 404 });
  });
});

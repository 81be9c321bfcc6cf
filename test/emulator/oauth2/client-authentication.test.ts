import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import type { Settings } from '../../../src/emulator/index.ts';
import { type FakeClock, post } from '../portal-client.ts';
import { refusal, StockClient, startCloud, TOOL } from './stock-client.ts';

const basicHeader = (id: string, secret: string) => {
  const encoded = [id, secret].map((one) => encodeURIComponent(one)).join(':');
  return { authorization: `Basic ${Buffer.from(encoded).toString('base64')}` };
};

const BASIC = basicHeader(TOOL.id, TOOL.secret);
const ID = { client_id: TOOL.id };
const POST = { ...ID, client_secret: TOOL.secret };

/** Requests by what they contain; all of them are for the device authorization endpoint. */
const REQUESTS: Readonly<Record<string, readonly [Record<string, string>, Record<string, string>]>> = {
  post: [POST, {}],
  basic: [{}, BASIC],
  'basic and client_id': [ID, BASIC],
  both: [POST, BASIC],
  none: [ID, {}],
  'a wrong secret in the form': [{ ...ID, client_secret: 'wrong' }, {}],
  'a wrong secret in the header': [{}, basicHeader(TOOL.id, 'wrong')],
  'both with a wrong secret in the form': [{ ...ID, client_secret: 'wrong' }, BASIC],
  'both with a wrong secret in the header': [POST, basicHeader(TOOL.id, 'wrong')],
  'two different client IDs': [{ client_id: 'other' }, BASIC],
  nothing: [{}, {}],
  'a malformed header': [{}, { authorization: 'Basic !' }],
};

test.for<[Settings['clientAuthentication'], readonly string[]]>([
  ['any', ['post', 'basic', 'basic and client_id']],
  ['post', ['post']],
  ['basic', ['basic', 'basic and client_id']],
  ['both', ['both']],
  ['none', ['none']],
  ['private_key_jwt', []],
])('with client authentication %s a client with a secret authenticates by %j only', async ([method, accepted]) => {
  await using cloud = await startCloud({ clientAuthentication: method });
  const url = `${cloud.emulator.frontendUrl}/oauth2/device_authorization`;
  const good: string[] = [];
  for (const [name, [form, headers]] of Object.entries(REQUESTS)) {
    const { status } = await post(url, form, headers);
    if (status === 200) good.push(name);
    else {
      const isMalformed = name === 'two different client IDs' || (name.startsWith('both') && method !== 'both');
      expect(status, name).toBe(isMalformed ? 400 : 401);
    }
  }
  expect(good).toEqual(accepted);
  expect(cloud.emulator.findings().failedAuthentications.length).toBeGreaterThan(0);
});

test('twoAuthenticationMethods: a request may have the secret in the header and in the form', async () => {
  await using cloud = await startCloud({ twoAuthenticationMethods: true });
  const url = `${cloud.emulator.frontendUrl}/oauth2/device_authorization`;
  for (const clientAuthentication of ['any', 'post', 'basic'] as const) {
    cloud.emulator.change({ clientAuthentication });
    expect((await post(url, POST, BASIC)).status, clientAuthentication).toBe(200);
  }
  expect((await post(url, POST, basicHeader(TOOL.id, 'wrong'))).status).toBe(401);
});

test('a public client sends only its client_id, or HTTP Basic with an empty secret', async () => {
  await using cloud = await startCloud({ clients: [{ id: 'public' }] });
  const url = `${cloud.emulator.frontendUrl}/oauth2/device_authorization`;
  const status = async (form: Record<string, string>, headers = {}) => (await post(url, form, headers)).status;
  const id = { client_id: 'public' };
  expect(await status(id)).toBe(200);
  expect(await status({}, basicHeader('public', ''))).toBe(200);
  expect(await status({ ...id, client_secret: 'x' })).toBe(401);
  expect(await status({}, basicHeader('public', 'x'))).toBe(401);
});

test('a failed authentication says what is wrong, in the response and in the findings, and shows no secret', async () => {
  await using cloud = await startCloud();
  const { frontendUrl, findings } = cloud.emulator;
  const description = async (form: Record<string, string>, headers = {}) => {
    const response = await post(`${frontendUrl}/oauth2/token`, { grant_type: 'refresh_token', ...form }, headers);
    return ((await response.json()) as { error_description: string }).error_description;
  };
  const wrong = 'the secret is not that of the client tool';
  const none = 'no secret was sent: use HTTP Basic, or client_id and client_secret in the form';
  expect(await description({ client_id: TOOL.id, client_secret: 'wrong-one' })).toBe(wrong);
  expect(await description({}, basicHeader(TOOL.id, 'wrong-one'))).toBe(wrong);
  expect(await description({ client_id: TOOL.id })).toBe(none);
  const unknown = 'the client is not registered: found';
  expect(await description({ client_id: 'nobody' })).toBe(`${unknown} the client_id nobody; registered: tool`);
  expect(await description({})).toBe(`${unknown} no client_id; registered: tool`);
  for (const swapped of [TOOL.secret, `${TOOL.id}:${TOOL.secret}`])
    expect(await description({ client_id: swapped })).toBe(`${unknown} a secret as client_id; registered: tool`);
  await post(`${frontendUrl}/sso/token`, {
    grant_type: 'refresh_token',
    client_id: TOOL.id,
    client_secret: 'wrong-one',
  });
  expect(findings().failedAuthentications).toMatchObject([
    { message: expect.stringContaining(`: ${wrong}.`) },
    { message: expect.stringContaining(`: ${none}.`) },
    { message: expect.stringContaining(`: ${unknown} `) },
    { message: `Client authentication failed (tool; credentials: form), 2 times: ${wrong}.` },
  ]);
  expect(JSON.stringify([findings(), cloud.emulator.requests])).not.toMatch(/wrong-one|with \+%&/);
});

async function startKeyCloud() {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: 'k', alg: 'ES256' }] };
  const cloud = await startCloud({ clients: [{ id: 'key-client', jwks }] });
  return { cloud, privateKey, [Symbol.asyncDispose]: () => cloud.emulator.close() };
}

test('a standard client authenticates with private_key_jwt', async () => {
  await using started = await startKeyCloud();
  const { cloud, privateKey } = started;
  const stock = await StockClient.discover(cloud, oauth.PrivateKeyJwt({ key: privateKey, kid: 'k' }));
  const { device_code, user_code } = await stock.beginDevice();
  await cloud.emulator.approveDevice({ userCode: user_code, user: 'alice' });
  const { refresh_token } = await stock.poll(device_code);
  const { refresh_token: next = '' } = await stock.refresh(refresh_token);
  await stock.revoke(next);
  await expect(stock.refresh(next)).rejects.toMatchObject(refusal('invalid_grant'));
  const foreign = await generateKeyPair('ES256');
  const stranger = await StockClient.discover(cloud, oauth.PrivateKeyJwt({ key: foreign.privateKey, kid: 'k' }));
  await expect(stranger.beginDevice()).rejects.toMatchObject(refusal('invalid_client', 401));
  expect(cloud.emulator.findings().failedAuthentications).toMatchObject([{ client: 'key-client', way: 'assertion' }]);
  expect(cloud.emulator.requests.at(-1)?.form).toMatchObject({ client_assertion: expect.stringMatching(/^#/) });
});

test('an assertion must be for this server, unexpired and unused', async () => {
  await using started = await startKeyCloud();
  const { cloud, privateKey } = started;
  const issuer = cloud.emulator.frontendUrl;
  const url = `${issuer}/oauth2/device_authorization`;
  const assertion = async (claims: object, clock: FakeClock = cloud.clock) => {
    const now = Math.floor(clock.wall / 1000);
    const all = {
      iss: 'key-client',
      sub: 'key-client',
      aud: issuer,
      exp: now + 60,
      jti: crypto.randomUUID(),
      ...claims,
    };
    return new SignJWT(all).setProtectedHeader({ alg: 'ES256', kid: 'k' }).sign(privateKey);
  };
  const client_assertion_type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
  const send = async (jwt: string, more = {}) =>
    (await post(url, { client_assertion_type, client_assertion: jwt, ...more })).status;
  const good = await assertion({});
  cloud.emulator.addFault({ kind: 'status', endpoint: 'device_authorization', status: 503 });
  expect(await send(good)).toBe(503);
  expect(await send(good)).toBe(200);
  expect(await send(good)).toBe(401);
  cloud.emulator.advance(86_400);
  expect(await send(good)).toBe(401);
  for (const aud of [url, `${issuer}/oauth2/token`, [issuer, 'x']])
    expect(await send(await assertion({ aud }))).toBe(200);
  for (const wrong of [
    { aud: 'https://other.example' },
    { exp: 1 },
    { exp: undefined },
    { jti: undefined },
    { sub: 'x' },
  ]) {
    expect(await send(await assertion(wrong)), JSON.stringify(wrong)).toBe(401);
  }
  expect(await send(await assertion({}), { client_secret: 'x' })).toBe(400);
  expect(await send(await assertion({}), { client_assertion_type: 'x' })).toBe(400);
  expect(await send('x.y.z')).toBe(401);
});

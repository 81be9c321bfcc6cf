import * as oauth from 'oauth4webapi';
import { expect, test } from 'vitest';
import { LoginError } from '../../../src/emulator/index.ts';
import { ALICE, get, post, requestEmulatorApi } from '../portal-client.ts';
import { refusal, StockClient, startCloud, TOOL } from './stock-client.ts';

const PUBLIC = { id: 'public-tool', name: 'Public <tool>' };

async function startPublicCloud(options: Parameters<typeof startCloud>[0] = {}) {
  const cloud = await startCloud({ clients: [PUBLIC], ...options });
  return {
    cloud,
    stock: await StockClient.discover(cloud, oauth.None()),
    [Symbol.asyncDispose]: () => cloud.emulator.close(),
  };
}

test('a device gets tokens after its user has allowed access, and its code works once', async () => {
  await using started = await startPublicCloud();
  const { cloud, stock } = started;
  const device = await stock.beginDevice({ scope: 'openid offline_access' });
  expect(device).toMatchObject({ expires_in: 600, interval: 5 });
  expect(device.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  await expect(stock.poll(device.device_code)).rejects.toMatchObject(refusal('authorization_pending'));
  cloud.clock.pass(5);
  await cloud.emulator.approveDevice({ userCode: device.user_code, user: ALICE.name });
  const loggedInAt = Math.floor(cloud.clock.wall / 1000);
  cloud.clock.pass(5);
  const tokens = await stock.poll(device.device_code);
  expect(tokens).toMatchObject({ scope: 'openid offline_access', expires_in: 3600 });
  expect(oauth.getValidatedIdTokenClaims(tokens)).toMatchObject({ sub: 'alice', auth_time: loggedInAt });
  expect((await stock.refresh(tokens.refresh_token)).token_type).toBe('bearer');
  cloud.clock.pass(5);
  await expect(stock.poll(device.device_code)).rejects.toMatchObject(refusal('invalid_grant'));
  const issued = cloud.emulator.secretsIssued('device_code', 'user_code');
  expect(issued).toEqual([device.device_code, device.user_code]);
  const logged = cloud.emulator.requests.find(({ endpoint }) => endpoint === 'device_authorization');
  expect(logged?.answer).toMatchObject({
    verification_uri_complete: expect.stringMatching(/\?user_code=#/),
    device_code: expect.stringMatching(/^#/),
  });
});

test('a device that polls too fast gets slow_down, must then wait longer, and is counted', async () => {
  await using started = await startPublicCloud();
  const { cloud, stock } = started;
  const { device_code, user_code } = await stock.beginDevice();
  const poll = () => stock.poll(device_code);
  await expect(poll()).rejects.toMatchObject(refusal('authorization_pending'));
  cloud.clock.pass(4);
  await expect(poll()).rejects.toMatchObject(refusal('slow_down'));
  cloud.clock.pass(9);
  await expect(poll()).rejects.toMatchObject(refusal('slow_down'));
  cloud.clock.pass(15);
  await expect(poll()).rejects.toMatchObject(refusal('authorization_pending'));
  await cloud.emulator.approveDevice({ userCode: user_code, user: ALICE.name });
  cloud.clock.pass(15);
  expect((await poll()).token_type).toBe('bearer');
  expect(cloud.emulator.observations.fastPolls).toBe(2);
  expect(cloud.emulator.findings().fastPolls).toMatchObject([{ client: PUBLIC.id, count: 2 }]);
});

test('a device learns that its user has refused, and that its code has expired', async () => {
  await using started = await startPublicCloud({ deviceCodeLifetime: 60, deviceInterval: 1 });
  const { cloud, stock } = started;
  const [refused, late] = [await stock.beginDevice(), await stock.beginDevice()];
  expect(refused).toMatchObject({ expires_in: 60, interval: 1 });
  await cloud.emulator.approveDevice({ userCode: refused.user_code, deny: true });
  await expect(stock.poll(refused.device_code)).rejects.toMatchObject(refusal('access_denied'));
  cloud.clock.pass(59);
  await expect(stock.poll(late.device_code)).rejects.toMatchObject(refusal('authorization_pending'));
  cloud.clock.pass(1);
  await expect(stock.poll(late.device_code)).rejects.toMatchObject(refusal('expired_token'));
  const approval = cloud.emulator.approveDevice({ userCode: late.user_code, user: ALICE.name });
  await expect(approval).rejects.toThrow(LoginError);
});

test('a device code belongs to its client', async () => {
  await using cloud = await startCloud({ clients: [TOOL, PUBLIC] });
  const stock = await StockClient.discover(cloud);
  const { device_code, user_code } = await stock.beginDevice();
  await cloud.emulator.approveDevice({ userCode: user_code, user: ALICE.name });
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
  const foreign = await post(stock.server.token_endpoint ?? '', { client_id: PUBLIC.id, grant_type, device_code });
  expect([foreign.status, await foreign.json()]).toMatchObject([400, { error: 'invalid_grant' }]);
  expect((await stock.poll(device_code)).token_type).toBe('bearer');
});

test('PKCE protects the device flow too', async () => {
  await using started = await startPublicCloud({ pkce: 'required' });
  const { cloud, stock } = started;
  await expect(stock.beginDevice()).rejects.toMatchObject(refusal('invalid_request'));
  const code_verifier = oauth.generateRandomCodeVerifier();
  const code_challenge = await oauth.calculatePKCECodeChallenge(code_verifier);
  const { device_code, user_code } = await stock.beginDevice({ code_challenge, code_challenge_method: 'S256' });
  await cloud.emulator.approveDevice({ userCode: user_code, user: ALICE.name });
  await expect(stock.poll(device_code)).rejects.toMatchObject(refusal('invalid_grant'));
  cloud.clock.pass(5);
  expect((await stock.poll(device_code, { code_verifier })).token_type).toBe('bearer');
});

test('a person enters the user code, logs in and allows access, and is only asked to confirm the next time', async () => {
  await using started = await startPublicCloud();
  const { stock } = started;
  const device = await stock.beginDevice({ scope: 'read' });
  expect(await (await get(device.verification_uri)).text()).toContain('The code that your device shows');
  const url = `${device.verification_uri}?user_code=${device.user_code.replace('-', '').toLowerCase()}`;
  const page = await get(url);
  const text = await page.text();
  expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
  for (const shown of [device.user_code, 'Public &#60;tool&#62;', 'Requested permissions: read'])
    expect(text).toContain(shown);
  const wrong = await post(url, { username: ALICE.name, password: 'wrong' });
  expect([wrong.status, await wrong.text()]).toEqual([403, expect.stringContaining('wrong')]);
  const allowed = await post(url, { username: ALICE.name, password: ALICE.password });
  expect([allowed.status, await allowed.text()]).toEqual([200, expect.stringContaining('now gets access')]);
  expect((await stock.poll(device.device_code)).token_type).toBe('bearer');
  expect((await get(url)).status).toBe(400);

  const [cookie = ''] = (allowed.headers.get('set-cookie') ?? '').split(';');
  const next = await stock.beginDevice();
  const complete = next.verification_uri_complete ?? '';
  expect(await (await get(complete, { cookie })).text()).toContain('Continue as alice');
  const refused = await post(complete, { action: 'refuse' }, { cookie });
  expect(await refused.text()).toContain('does not get access');
  await expect(stock.poll(next.device_code)).rejects.toMatchObject(refusal('access_denied'));
});

test('an unknown user code is refused by the page, the API and the library', async () => {
  await using started = await startPublicCloud({ verificationUriComplete: false });
  const { cloud, stock } = started;
  const device = await stock.beginDevice();
  expect(device).not.toHaveProperty('verification_uri_complete');
  expect((await get(`${device.verification_uri}?user_code=BBBB-BBBB`)).status).toBe(400);
  const api = (body: object) => requestEmulatorApi(cloud.emulator, 'POST', 'device', body);
  const unknown = await api({ user_code: 'BBBB-BBBB', user: ALICE.name });
  expect([unknown.status, await unknown.json()]).toMatchObject([
    400,
    { message: expect.stringMatching(/^user_code: /) },
  ]);
  const nobody = await api({ user_code: device.user_code, user: 'nobody' });
  expect([nobody.status, await nobody.json()]).toMatchObject([
    400,
    { message: expect.stringMatching(/^user: .*alice/) },
  ]);
  expect(cloud.emulator.devices()).toMatchObject([{ user_code: device.user_code, client: PUBLIC.id }]);
  expect((await api({ user_code: device.user_code, user: ALICE.name })).status).toBe(200);
  expect(cloud.emulator.devices()).toEqual([]);
  expect((await api({ user_code: device.user_code, deny: true })).status).toBe(400);
  expect((await stock.poll(device.device_code)).token_type).toBe('bearer');
});

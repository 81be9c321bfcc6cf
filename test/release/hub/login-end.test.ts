import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { NoticeMessage } from '../../../src/core/health/notice.ts';
import { basicAuthorization, FORM, HubClient, parseJsonBody } from '../../lan/hub-client.ts';
import { scrapeMetrics } from '../../metrics/scrape.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { startPortal } from '../../support/portal.ts';

/** How long logins last, in seconds. A person is reminded after half of it. */
const LOGIN_LIFETIME = 30;

test('a login that the portal ends soon is reported on every channel, until somebody logs in again', async () => {
  await using emulator = await startPortal({ loginLifetime: LOGIN_LIFETIME, tokenLifetime: 6 });
  await using hub = await HubProcess.prepare({ emulator, metrics: '127.0.0.1:0', here: true });
  const command = ['sh', '-c', 'cat >> "$0"', join(hub.directory, 'notices')];
  const file = join(hub.directory, 'latchkey.toml');
  await writeFile(file, `${await readFile(file, 'utf8')}\n[notify]\ncommand = ${JSON.stringify(command)}\n`);
  const delivered = async () => {
    const text = await readFile(join(hub.directory, 'notices'), 'utf8').catch(() => '');
    return text
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as NoticeMessage);
  };
  await hub.launch();
  await hub.addAppliance('wallbox');
  await hub.pair('wallbox', emulator);
  const before = await hub.ask((control) => control.request('status'));
  expect(before.conditions).toMatchObject([{ code: 'appliance_never_served' }]);
  // Only a refresh shows that it does not put the end off.
  expect(before.connections[0]?.login_ends).toBeNull();

  const reminder = {
    severity: 'warning',
    appliance: 'wallbox',
    connection: 'wallbox',
    message: expect.stringMatching(/^wallbox must be connected again before .*Z, when its login ends$/),
    what_to_do: expect.stringMatching(/^Log in again before then: .* "latchkey pair wallbox"$/),
  };
  await eventually(async () => (await delivered()).length > 0, LOGIN_LIFETIME);
  expect(await delivered()).toMatchObject([{ status: 'raised', notice: 'login_ending', ...reminder }]);
  const status = await hub.ask((control) => control.request('status'));
  expect(status.conditions[0]).toMatchObject({ code: 'login_ending', ...reminder });
  expect(status.notices).toMatchObject([{ code: 'login_ending', ...reminder }]);
  expect(status.appliances).toMatchObject([{ state: 'active', problem: null }]);
  expect(hub.events('notice')).toMatchObject([
    { notice: 'login_ending', status: 'raised', level: 'warn', ...reminder },
  ]);
  const metrics = await scrapeMetrics(status.hub.metrics_port);
  expect(status.connections[0]?.login_ends).toMatch(/:00Z$/);
  const ends = Date.parse(String(status.connections[0]?.login_ends)) / 1000;
  expect(metrics.value('latchkey_login_ends_timestamp_seconds', { connection: 'wallbox' })).toBe(ends);
  const condition = { code: 'login_ending', severity: 'warning', connection: 'wallbox', appliance: 'wallbox' };
  expect(metrics.value('latchkey_condition', condition)).toBe(1);
  const text = await hub.cli('status');
  expect(text.status).toBe(0);
  expect(text.stdout).toMatch(/wallbox must be connected again before .*Log in again before then: open https/);

  await hub.pair('wallbox', emulator);
  await eventually(async () => (await delivered()).length > 1);
  expect((await delivered()).slice(1)).toMatchObject([{ status: 'resolved', notice: 'login_ending' }]);
  expect((await hub.ask((control) => control.request('status'))).conditions).toMatchObject([
    { code: 'appliance_never_served' },
  ]);
});

test('an appliance gets the ID token of the portal with each grant type, if the scope has openid', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.start({ emulator, here: true });
  await using client = await HubClient.of(hub);
  const meter = await hub.addAppliance('meter', 'Monitoring');
  await hub.pair('meter', emulator);
  const wallbox = await hub.addAppliance('wallbox', 'openid Monitoring');
  const authorization = basicAuthorization(wallbox);
  const post = (path: string, form: Record<string, string>) => {
    const body = new URLSearchParams(form).toString();
    return client.https(path, { method: 'POST', headers: { authorization, 'content-type': FORM }, body });
  };
  const started = parseJsonBody(await post('/oauth/device_authorization', {}));
  const pairPage = new URLSearchParams({ user_code: String(started['user_code']) }).toString();
  const { headers } = await client.https('/pair', {
    method: 'POST',
    headers: { 'content-type': FORM },
    body: pairPage,
  });
  const state = new URL(String(headers['location'])).searchParams.get('state') ?? '';
  await emulator.login({ state, user: 'demo' });
  const device_code = String(started['device_code']);
  rememberSecrets([device_code]);
  const byDeviceCode = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code };
  const first = await eventually(async () => {
    const response = await post('/oauth/token', byDeviceCode);
    return response.status === 200 && parseJsonBody(response);
  }, 60);
  rememberSecrets([String(first['id_token']), String(first['refresh_token'])]);
  const [, claims = ''] = String(first['id_token']).split('.');
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ sub: 'demo' });
  for (const form of [
    { grant_type: 'client_credentials' },
    { grant_type: 'refresh_token', refresh_token: String(first['refresh_token']) },
  ]) {
    expect(parseJsonBody(await post('/oauth/token', form))['id_token']).toBe(first['id_token']);
  }
  const other = await client.token({ grant_type: 'client_credentials' }, { authorization: basicAuthorization(meter) });
  expect(parseJsonBody(other)).not.toHaveProperty('id_token');
});

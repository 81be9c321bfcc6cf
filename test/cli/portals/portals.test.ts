import { mkdtempSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startEmulator } from '../../../src/emulator/index.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { jsonOn, runLatchkey, startOn } from '../command.ts';

const folder = mkdtempSync(join(tmpdir(), 'lk-portals-'));

interface Check {
  readonly name: string;
  readonly result: string;
  readonly detail: string;
}

/** The results of the checks, without the details. */
const resultsOf = ({ checks }: { checks: readonly Check[] }) =>
  Object.fromEntries(checks.map(({ name, result }) => [name, result]));

/** A hub with these portals, and a secret of each client. */
async function startHub(toml: string, emulator?: Parameters<typeof HubProcess.prepare>[0]): Promise<HubProcess> {
  const hub = await HubProcess.prepare({ ...emulator, toml, here: true });
  await writeFile(join(hub.directory, 'right.secret'), 'the-right-secret', { mode: 0o600 });
  await writeFile(join(hub.directory, 'wrong.secret'), 'another-secret', { mode: 0o600 });
  await hub.launch();
  return hub;
}

const startCloud = (options: Parameters<typeof startEmulator>[0] = {}) =>
  startEmulator({
    clients: [
      { id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'the-right-secret' },
      { id: 'public-client' },
      { id: 'secret-client', secret: 'the-right-secret' },
    ],
    ...options,
  });

test('portals lists how one logs in at each portal, the redirect URI to register, and when it was reached', async () => {
  await using emulator = await startCloud({ deviceInterval: 1 });
  const cloud = `type = "oauth2"\nissuer = "${emulator.frontendUrl}"\nclient_id = "public-client"`;
  await using hub = await startHub(
    `[portals.pasted]\n${cloud}\ntitle = "Nordwind heating"\nlogin = "paste"\nredirect_uri = "https://app.example/callback"
[portals.redirected]\n${cloud}\nlogin = "redirect"
[portals.ownmachine]\n${cloud}\nlogin = "redirect"\nredirect_uri = "http://localhost:8480/callback"
[portals.device]\n${cloud}
[portals.unknown]\ntype = "oauth2"\nissuer = "https://127.0.0.1:9"\nclient_id = "a"
[portals.polled]\nbase_url = "${emulator.baseUrl}"\nfrontend_url = "${emulator.frontendUrl}"
client_id = "${emulator.clientId}"\nclient_secret_file = "right.secret"\nredirect = "off"
[connections.solar]\nportal = "redirected"\n[connections.heating]\nportal = "device"`,
    { emulator },
  );
  const callback = `http://127.0.0.1:${hub.httpPort}/callback`;
  const expected = [
    { name: 'home', title: 'home', type: 'helper', login: 'redirect', redirect_uri: null, reached: null },
    {
      name: 'pasted',
      title: 'Nordwind heating',
      type: 'oauth2',
      login: 'paste',
      redirect_uri: 'https://app.example/callback',
      reached: null,
    },
    {
      name: 'redirected',
      title: 'redirected',
      type: 'oauth2',
      login: 'redirect',
      redirect_uri: callback,
      reached: null,
    },
    {
      name: 'ownmachine',
      title: 'ownmachine',
      type: 'oauth2',
      login: 'paste',
      redirect_uri: 'http://localhost:8480/callback',
      reached: null,
    },
    { name: 'device', title: 'device', type: 'oauth2', login: 'device', redirect_uri: null, reached: null },
    { name: 'unknown', title: 'unknown', type: 'oauth2', login: null, redirect_uri: callback, reached: null },
    { name: 'polled', title: 'polled', type: 'helper', login: 'poll', redirect_uri: null, reached: null },
  ];
  expect(await jsonOn(hub, 'portals')).toEqual({ portals: expected });
  const text = (await startOn(hub, 'portals').ended).stdout;
  expect(text).toContain(`\n  redirect URI  ${callback}\n`);
  expect(text).toContain('  title         Nordwind heating\n');
  expect(text).toContain('  redirect URI  https://app.example/callback\n');
  expect(text).toContain('not since the start');

  // The hub makes the link of a redirect by itself.
  expect((await startOn(hub, 'pair', 'solar', '--no-wait').ended).status).toBe(0);
  expect((await startOn(hub, 'pair', 'heating', '--no-wait').ended).status).toBe(0);
  // From here on the hub polls no more.
  expect((await startOn(hub, 'unpair', 'heating').ended).status).toBe(0);
  const { portals } = await jsonOn<{ portals: { name: string; reached: string | null }[] }>(hub, 'portals');
  const reached = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(portals.filter((portal) => portal.reached !== null)).toEqual([
    expect.objectContaining({ name: 'device', reached }),
  ]);
  await hub.reload();
  expect(await jsonOn(hub, 'portals')).toEqual({ portals });
});

test('portals check accepts a portal of each kind without a login', async () => {
  await using emulator = await startCloud();
  const cloud = `type = "oauth2"\nissuer = "${emulator.frontendUrl}"`;
  await using hub = await startHub(
    `[portals.device]\n${cloud}\nclient_id = "public-client"
[portals.redirected]\n${cloud}\nclient_id = "secret-client"\nclient_secret_file = "right.secret"\nlogin = "redirect"
[portals.named]\ntype = "oauth2"\nclient_id = "public-client"\ntoken_endpoint = "${emulator.frontendUrl}/oauth2/token"
authorization_endpoint = "${emulator.frontendUrl}/oauth2/authorize"
retry_lost_answer = "late"`,
    { emulator },
  );
  const fine = { endpoints: 'ok', tls: 'ok', clock: 'ok', client: 'ok' };
  expect(resultsOf(await jsonOn(hub, 'portals', 'check', 'home'))).toEqual(fine);
  for (const name of ['device', 'redirected'])
    expect(resultsOf(await jsonOn(hub, 'portals', 'check', name)), name).toEqual({ discovery: 'ok', ...fine });
  const named = await jsonOn<{ checks: Check[] }>(hub, 'portals', 'check', 'named');
  expect(resultsOf(named)).toEqual({ discovery: 'ok', ...fine, logins: 'ok' });
  const detailOf = (wanted: string) => named.checks.find(({ name }) => name === wanted)?.detail;
  expect(detailOf('endpoints')).toContain('none to revoke a login: "latchkey unpair" ends it only at the hub');
  expect(detailOf('logins')).toContain('let appliances of one account share a connection');
  const text = await startOn(hub, 'portals', 'check', 'device').ended;
  expect(text).toMatchObject({ status: 0, stderr: '' });
  expect(text.stdout).toMatch(/^ok {2}discovery {2}\S+ describes its endpoints\n/);
  expect(text.stdout).toMatch(/\nok {2}client {5}the portal accepts the hub as its client .*\n$/);
  expect(emulator.grants()).toEqual([]);
  expect(await startOn(hub, 'portals', 'check', 'elsewhere').ended).toMatchObject({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/^latchkey: there is no portal elsewhere: .*\n$/),
  });
});

test('portals check says whether a client_id or a secret is not accepted, and where to correct it', async () => {
  await using emulator = await startCloud();
  const cloud = `type = "oauth2"\nissuer = "${emulator.frontendUrl}"`;
  await using hub = await startHub(
    `[portals.device]\n${cloud}\nclient_id = "unknown-client"
[portals.secret]\n${cloud}\nclient_id = "secret-client"\nclient_secret_file = "wrong.secret"\nlogin = "redirect"
[portals.helper]\nbase_url = "${emulator.baseUrl}"\nfrontend_url = "${emulator.frontendUrl}"
client_id = "${emulator.clientId}"\nclient_secret_file = "wrong.secret"
[portals.stranger]\nbase_url = "${emulator.baseUrl}"\nfrontend_url = "${emulator.frontendUrl}"
client_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"\nclient_secret_file = "right.secret"`,
  );
  for (const [name, key] of [
    ['device', 'portals.device.client_id'],
    ['secret', 'wrong.secret'],
    ['helper', 'wrong.secret'],
    ['stranger', 'portals.stranger.client_id'],
  ] as const) {
    const { status, stdout, stderr } = await startOn(hub, 'portals', 'check', name, '--json').ended;
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    const { checks } = JSON.parse(stdout) as { checks: Check[] };
    expect(resultsOf({ checks }), name).toMatchObject({ endpoints: 'ok', tls: 'ok', client: 'fail' });
    const client = checks.find((check) => check.name === 'client');
    expect(client?.detail).toContain(key);
    expect(client?.detail).toContain('latchkey reload');
  }
  const all = await startOn(hub, 'portals', 'check', '--json').ended;
  expect(all.status).toBe(1);
  expect(resultsOf(JSON.parse(all.stdout))).toMatchObject({ 'device.client': 'fail', 'helper.client': 'fail' });
  expect((await startOn(hub, 'doctor').ended).stdout).toMatch(/^fail +portal\.helper\.client .*wrong\.secret/m);

  // After a start the hub asks only when it has done what cannot wait; a reload follows a correction.
  await hub.reload();
  const problems = await eventually(async () => {
    const found = (await hub.status()).hub.problems ?? [];
    return found.some(({ message }) => /device.*helper.*stranger/s.test(message)) && found;
  });
  expect(problems).toMatchObject([{ code: 'client_rejected', message: expect.stringContaining('wrong.secret') }]);
  expect((await startOn(hub, 'status').ended).status).toBe(3);
});

test('portals check tells an unreachable portal, one without the endpoints of its login, a wrong clock and a portal that moves apart', async () => {
  await using emulator = await startCloud({ flows: 'code' });
  const cloud = `type = "oauth2"\nissuer = "${emulator.frontendUrl}"\nclient_id = "public-client"`;
  await using hub = await startHub(
    `[portals.gone]\ntype = "oauth2"\nissuer = "https://127.0.0.1:9"\nclient_id = "a"
[portals.device]\n${cloud}\nlogin = "device"
[portals.redirected]\n${cloud}`,
  );
  const check = async (name: string) =>
    JSON.parse((await startOn(hub, 'portals', 'check', name, '--json').ended).stdout);
  expect(resultsOf(await check('gone'))).toEqual({
    discovery: 'fail',
    endpoints: 'warn',
    tls: 'fail',
    clock: 'warn',
    client: 'warn',
  });
  expect(resultsOf(await check('device'))).toMatchObject({ discovery: 'ok', endpoints: 'fail', tls: 'ok' });
  emulator.advance(3600);
  expect(resultsOf(await check('redirected'))).toMatchObject({ discovery: 'ok', endpoints: 'ok', clock: 'fail' });
  emulator.addFault({ kind: 'status', endpoint: 'token', status: 429, times: 2 });
  expect(resultsOf(await check('redirected'))).toMatchObject({ client: 'warn' });
  const members = '{"token_endpoint":"https://new.example/token"}';
  emulator.addFault({ kind: 'change_members', endpoint: 'discovery', members, times: null });
  expect(resultsOf(await check('redirected'))).toMatchObject({ discovery: 'fail', endpoints: 'ok' });
  expect((await hub.status()).hub.problems).toMatchObject([
    { code: 'portal_moved', message: expect.stringContaining('portals.redirected.token_endpoint') },
  ]);
});

test('portals check fails at a portal whose certificate is not trusted', async () => {
  await using emulator = await startCloud({ tls: true, caFile: join(folder, 'ca.pem') });
  await using hub = await startHub(
    `[portals.cloud]\ntype = "oauth2"\nissuer = "${emulator.frontendUrl}"\nclient_id = "public-client"
[portals.trusted]\ntype = "oauth2"\nissuer = "${emulator.frontendUrl}"\nclient_id = "public-client"\nca_file = "${join(folder, 'ca.pem')}"`,
  );
  const { status, stdout } = await startOn(hub, 'portals', 'check', 'cloud').ended;
  expect(status).toBe(1);
  expect(stdout).toMatch(/\nfail {2}tls .*the certificate of \S+ is not trusted: .*portals\.cloud\.ca_file/);
  expect((await startOn(hub, 'portals', 'check', 'trusted').ended).stdout).toMatch(
    /\nok {2}tls +\S+ responds, and its certificate is trusted\n/,
  );
});

test('portal add takes the secret from standard input, and removes what it added; the same twice is no error', async () => {
  await using emulator = await startCloud();
  await using hub = await startHub('');
  const config = ['--config', join(hub.directory, 'latchkey.toml')];
  const keys = ['--issuer', emulator.frontendUrl, '--client-id', 'secret-client', '--login', 'redirect'];
  const add = (secret: string, ...args: string[]) =>
    runLatchkey(['portal', 'add', 'cloud', ...keys, ...args, ...config], {}, secret);
  expect((await startOn(hub, 'portals').ended).stdout).toMatch(/^No portal is chosen yet\. .*latchkey portal add/);
  const refused = await add('another-secret');
  expect(refused).toMatchObject({ status: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^latchkey: cloud was not added: the portal does not accept .*\n$/);
  expect(refused.stderr).not.toContain('another-secret');

  const added = await add('the-right-secret\n');
  expect(added).toMatchObject({ status: 0, stderr: '' });
  expect(added.stdout).toMatch(/^ok {2}discovery .*\nok {2}client +the portal accepts the hub/s);
  expect(added.stdout).toContain('cloud is added.');
  const shown = {
    name: 'cloud',
    title: expect.any(String),
    type: 'oauth2',
    login: 'redirect',
    reached: null,
    added: true,
  };
  const again = await add('the-right-secret', '--json');
  expect(JSON.parse(again.stdout)).toEqual({ ...shown, redirect_uri: `http://127.0.0.1:${hub.httpPort}/callback` });
  expect(await add('another-secret', '--client-id', 'public-client')).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^latchkey: there is a portal cloud already: .*--replace/),
  });
  expect((await startOn(hub, 'portals').ended).stdout).toMatch(/declared +no: added by a person/);

  expect(await startOn(hub, 'portal', 'remove', 'cloud').ended).toMatchObject({
    status: 0,
    stderr: 'cloud is removed.\n',
  });
  expect(await jsonOn(hub, 'portals')).toEqual({ portals: [] });
  for (const args of [
    ['--variable', 'tenant'],
    ['--preset', 'nowhere'],
  ])
    expect(await runLatchkey(['portal', 'add', 'x', ...args, ...config], {}, '')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^latchkey: .*(NAME=VALUE|must be the name of a preset)/),
    });
});

test('portals --catalogue describes every preset, and where the presets come from, without a hub', async () => {
  const env = { LATCHKEY_HUB_CONTROL_SOCKET: '/nowhere/control.sock' };
  const { status, stdout, stderr } = await runLatchkey(['portals', '--catalogue'], env);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout).toContain('from public sources; not tried against the cloud itself');
  const json = await runLatchkey(['portals', '--catalogue', '--json'], env);
  const { provenance, presets } = JSON.parse(json.stdout);
  expect(provenance).toBe('from public sources; not tried against the cloud itself');
  expect(presets.length).toBeGreaterThan(10);
  for (const { name, title, register, known, unverified, sources } of presets) {
    expect(stdout).toContain(`\n${name}: ${title}\n`);
    for (const text of [...known, ...unverified, ...sources]) expect(stdout).toContain(`    - ${text}\n`);
    if (register !== null) expect(stdout).toContain(`  Register at ${register.url}\n`);
  }
  expect(stdout).not.toContain('{redirect_uri}');
});

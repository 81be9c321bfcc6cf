import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import type { NamedCheckResult } from '../../src/doctor/check-result.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { createSecretSearch } from '../after/secret-search.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { runLatchkey } from './command.ts';
import { unpackDiagnostics } from './diagnostics-archive.ts';

const WEBHOOK_SECRET = 'T04XK29QZ/gWx81LmPq72ZcRt0Va93';
const WEBHOOK = `https://notify.example/hooks/${WEBHOOK_SECRET}`;
const ARGUMENT = '--token=s3cr3t-Argument-of-a-Hook';

let folder: string;
let emulator: Emulator;
let hub: HubProcess;
let env: NodeJS.ProcessEnv;

setUpOnce(async (parts) => {
  folder = mkdtempSync(join(tmpdir(), 'latchkey-doctor-test-'));
  parts.defer(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'journal'), '');
  writeFileSync(join(folder, 'bin/journalctl'), `#!/bin/sh\ncat ${folder}/journal\n`);
  chmodSync(join(folder, 'bin/journalctl'), 0o755);
  emulator = parts.use(await startPortal());
  const toml = `[notify]\ncommand = ["/bin/true", "${ARGUMENT}"]\nwebhook = "${WEBHOOK}"\n`;
  env = { PATH: `${folder}/bin:${process.env['PATH']}`, LATCHKEY_HUB_NAME: 'Cellar' };
  hub = parts.use(await HubProcess.start({ emulator, metrics: '127.0.0.1:0', toml, env }));
  await hub.addAppliance('wallbox', 'Monitoring');
  await hub.pair('wallbox', emulator);
});

/** Runs the doctor on the hub, with the journal of these tests. */
const doctor = (...args: string[]) =>
  runLatchkey(['doctor', ...args, '--config', `${hub.directory}/latchkey.toml`], env);

it('doctor finds nothing wrong with a healthy hub, and prints a line for each check', async () => {
  const { status, stdout, stderr } = await doctor('--json');
  const { checks } = JSON.parse(stdout) as { checks: NamedCheckResult[] };
  expect(checks.filter(({ result }) => result !== 'ok')).toEqual([]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(Object.keys(checks[0] ?? {})).toEqual(['name', 'result', 'detail']);
  const names = checks.map(({ name }) => name.split('.')[0]);
  expect([...new Set(names)]).toEqual([
    ...['configuration', 'state', 'store', 'disk', 'clock', 'network', 'hub', 'service', 'ports', 'mdns', 'portal'],
    ...['notify', 'metrics', 'appliance'],
  ]);

  const text = await doctor();
  const lines = text.stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(checks.length);
  for (const line of lines) expect(line).toMatch(/^ok {2}\S+ +\S/);
  expect(text.stdout).toContain('appliance.wallbox');
});

it('doctor changes nothing, sends the portal no client_id, and lets the hub ask it with made-up tokens', async () => {
  const before = emulator.requests.length;
  const grants = emulator.grants();
  await doctor();
  const sent = emulator.requests.slice(before);
  for (const { method, url, query, form, authorization, client } of sent) {
    const sentRequest = { method, url, query, form, authorization, client };
    if (method === 'HEAD')
      expect(sentRequest).toEqual({ method, url: '/', query: {}, form: {}, authorization: null, client: null });
  }
  // The log of the emulator has only a hash of them.
  expect(new Set(sent.flatMap(({ form }) => form['refresh_token'] ?? form['code'] ?? [])).size).toBe(1);
  expect(new Set(sent.map(({ method }) => method))).toEqual(new Set(['HEAD', 'POST']));
  expect(emulator.grants()).toEqual(grants);
});

it('doctor --bundle writes an archive with all reports, and without secrets', async () => {
  const appliance = await hub.addAppliance('boiler');
  await hub.addAppliance('heat-pump');
  const link = await hub.beginPairing('boiler');
  const { code, sign_in } = await hub.setupCode();
  const invite = await hub.ask((control) =>
    control.request('invite', { name: 'sauna', scope: null, portal: null, connection: null, ttl: 600 }),
  );
  await using visitor = await PageVisitor.open(hub, '127.0.0.1');
  const cookies = [(await visitor.signIn(code)).headers['set-cookie'] ?? []].flat();
  const session = /=([^;]+)/.exec(cookies.join())?.[1] ?? '';
  const token = await hub.ask((control) => control.request('token', { name: 'wallbox' }));
  const secrets = [
    ...emulator.secretsIssued('code', 'access_token', 'refresh_token'),
    ...[token.access_token, appliance.client_secret, emulator.clientSecret, code, session, invite.token],
    ...[sign_in.split('/').at(-1) ?? '', link.searchParams.get('state') ?? '', WEBHOOK_SECRET, ARGUMENT],
    readFileSync(join(hub.directory, 'state/store.key'), 'utf8').trim(),
  ];
  expect(secrets.every((secret) => secret.length >= 12)).toBe(true);
  rememberSecrets(secrets);
  // The worst case: a journal that contains every secret in many forms.
  const journal = secrets.flatMap((secret) => [
    `a line with ${secret} in it`,
    `https://portal.example/x?code=${encodeURIComponent(secret)}&state=1`,
    `{"client_secret":${JSON.stringify(secret)},"access_token": ${JSON.stringify(secret)}}`,
    `authorization: Basic ${Buffer.from(`me:${secret}`).toString('base64')}`,
    `Cookie: session=${secret}; other=1`,
    `GET /callback/${secret} HTTP/1.1`,
  ]);
  journal.push(`posting to ${WEBHOOK}`);
  const innocent = '2026-11-22T07:40:00+0000 hub latchkey[1]: {"event":"hub_started","http_port":8480}';
  writeFileSync(join(folder, 'journal'), [innocent, ...journal].join('\n'));

  const file = join(folder, 'diagnostics.tar.gz');
  const { status, stderr, stdout } = await doctor('--bundle', file, '--json');
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(JSON.parse(stdout)).toMatchObject({ bundle: file });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const files = await unpackDiagnostics(file);
  const leaksIn = createSecretSearch(secrets);
  expect(leaksIn(Buffer.from(journal.join('\n')))).not.toEqual([]);
  for (const [name, text] of files) expect(leaksIn(Buffer.from(text)), name).toEqual([]);
  expect(leaksIn(gunzipSync(readFileSync(file)))).toEqual([]);

  expect([...files.keys()]).toEqual([
    ...['README.txt', 'doctor.json', 'status.json', 'configuration.json', 'environment.json', 'versions.json'],
    ...['network.txt', 'files.txt', 'history.json', 'metrics.txt', 'journal.txt'],
  ]);
  const { hub: hubStatus } = await hub.status();
  const status_ = JSON.parse(files.get('status.json') ?? '');
  expect(status_.hub).toMatchObject({ id: hubStatus.id, ca_fingerprint: hubStatus.ca_fingerprint });
  expect(status_.appliances).toContainEqual(
    expect.objectContaining({ name: 'boiler', state: 'pairing', authorize_url: 'left out' }),
  );
  expect(JSON.parse(files.get('history.json') ?? '')).toHaveProperty('wallbox');
  expect(JSON.parse(files.get('environment.json') ?? '')).toMatchObject({ LATCHKEY_HUB_NAME: 'Cellar' });
  expect(files.get('configuration.json')).toContain('"webhook": "https://notify.example"');
  expect(files.get('configuration.json')).toContain(emulator.clientId);
  expect(files.get('files.txt')).toMatch(/^100600 .* latchkey\.db$/m);
  expect(files.get('metrics.txt')).toContain('# TYPE latchkey_');
  expect(files.get('journal.txt')).toContain(innocent);
});

it('doctor --bundle replaces an existing file only with --yes', async () => {
  const file = join(folder, 'there');
  writeFileSync(file, 'mine');
  const refused = await doctor('--bundle', file);
  expect(refused).toMatchObject({ status: 1, stdout: '', stderr: expect.stringMatching(/already exists.*--yes\n$/) });
  expect(readFileSync(file, 'utf8')).toBe('mine');
  expect((await doctor('--bundle', file, '--yes')).stderr).toBe('');
  expect((await unpackDiagnostics(file)).has('doctor.json')).toBe(true);
});

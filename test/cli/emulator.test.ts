import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { expect, test } from 'vitest';
import { rememberSecrets } from '../support/logs.ts';
import { runLatchkey, startLatchkey } from './command.ts';

const id = '0d9c3a52-6f2a-4f0e-9a51-0d1a7c9b5e11';

test.each(['SIGINT', 'SIGTERM'] as const)(
  'emulator --json prints its addresses and credentials in the first line, and %s ends it with success',
  async (signal) => {
    const emulator = startLatchkey(['emulator', '--json', '--client', `${id}:a:secret`]);
    const line = JSON.parse((await emulator.stdout(/\n/)).split('\n')[0] ?? '') as Record<string, string>;
    expect(Object.keys(line)).toEqual(['base_url', 'frontend_url', 'client_id', 'client_secret', 'console_url']);
    expect(line).toMatchObject({ client_id: id, client_secret: 'a:secret' });
    expect((await request(`${line['base_url']}/api/whoami`)).statusCode).toBe(401);
    emulator.process.kill(signal);
    expect(await emulator.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  },
);

test('emulator prints its addresses and credentials in separate lines for people', async () => {
  const emulator = startLatchkey(['emulator']);
  const text = await emulator.stdout(/console .*\n/);
  for (const word of ['base_url', 'frontend_url', 'client_id', 'client_secret']) expect(text).toContain(word);
  rememberSecrets([/client_secret +(\S+)/.exec(text)?.[1] ?? '']);
  emulator.process.kill('SIGINT');
  expect((await emulator.ended).status).toBe(0);
});

test('emulator does not print a secret that it was given, as its output may be logged', async () => {
  const emulator = startLatchkey(['emulator', '--client', `${id}:a-given-secret`]);
  const text = await emulator.stdout(/console .*\n/);
  expect(text).toMatch(/client_secret +as given\n/);
  expect(text).not.toContain('a-given-secret');
  emulator.process.kill('SIGINT');
  expect((await emulator.ended).status).toBe(0);
});

test('emulator passes its options to the emulator', async () => {
  const flags = `--host 127.0.0.1 --port 0 --frontend-port 0 --client ${id}:one-secret --user ann:pw --user bob:pw
    --auto-login --code-lifetime 30s --token-lifetime 10m --refresh-lifetime 2h --refresh-grace 1
    --on-reuse revoke-family --basic refuse --json`;
  const emulator = startLatchkey(['emulator', ...flags.split(/\s+/)]);
  const line = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
  const answered = await fetch(`${line['base_url']}/external/oauth2helper/config/${id}`, { method: 'POST' });
  const config = (await answered.json()) as Record<string, string>;

  await fetch(config['authorize_url'] ?? ''); // logs the first user in, and makes the code available for polling
  const { code } = (await (await fetch(config['code_url'] ?? '')).json()) as { code: string };
  const form = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: `${line['base_url']}/external/oauth2helper/code/set`,
  };
  const exchange = (body: Record<string, string>, headers: Record<string, string>) =>
    fetch(config['accesstoken_request_url'] ?? '', { method: 'POST', body: new URLSearchParams(body), headers });
  const authorization = `Basic ${Buffer.from(`${id}:one-secret`).toString('base64')}`;
  expect((await exchange(form, { authorization })).status).toBe(401);
  const tokens = await exchange({ ...form, client_id: id, client_secret: 'one-secret' }, {});
  expect(await tokens.json()).toMatchObject({ expires_in: 600 });

  emulator.process.kill('SIGINT');
  expect((await emulator.ended).status).toBe(0);
});

test('emulator reads options from a file, and flags override them', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'emulator-options-'));
  const file = join(folder.path, 'options.toml');
  await writeFile(
    file,
    `client = ["${id}:file-secret"]
allowed_host = ["bench.example", "portal"]
auto_login = true
relay_refusal = false
code_lifetime = 30.5
token_lifetime = "10m"
error_body = "html"
rate_limit = 5
`,
  );
  const emulator = startLatchkey([
    'emulator',
    '--options',
    file,
    '--rate-limit',
    '7',
    '--refresh-grace-time',
    '20s',
    '--json',
  ]);
  const line = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
  expect(line).toMatchObject({ client_id: id, client_secret: 'file-secret' });
  const response = await request(`${line['console_url']}settings`, { headers: { host: 'portal:8080' } });
  await response.body.dump();
  expect(response.statusCode).toBe(200);
  const settings = await fetch(`${line['console_url']}settings`);
  expect(await settings.json()).toMatchObject({
    auto_login: true,
    relay_refusal: false,
    code_lifetime: 30.5,
    token_lifetime: 600,
    refresh_grace_time: 20,
    error_body: 'html',
    rate_limit: 7,
  });
  emulator.process.kill('SIGINT');
  expect((await emulator.ended).status).toBe(0);
});

test.each([
  ['tokenLifetime = 60', /tokenLifetime: unknown key \(did you mean token_lifetime\?\); allowed keys: host, /],
  ['json = true', /json: unknown key/],
  ['basic = "maybe"', /basic: must be one of accept, refuse \(found "maybe"\)/],
  ['auto_login = "yes"', /auto_login: must be true or false \(found "yes"\)/],
  ['rate_limit = -1', /rate_limit: must be a whole number \(found -1\)/],
  ['refuse_redirect_urls = "("', /--refuse-redirect-urls: must be a JavaScript regular expression .*\(found "\("\)/],
  [`client = "${id}:hush-hush"`, /client: must be a list of strings \(found a string\)/],
  ['basic = ', /line 1 is not valid TOML/],
])('emulator rejects an options file with %j as wrong usage, in one line that names the key', async (text, problem) => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'emulator-options-'));
  const file = join(folder.path, 'options.toml');
  await writeFile(file, text);
  const wrong = await runLatchkey(['emulator', '--options', file]);
  expect(wrong).toMatchObject({ status: 2, stdout: '' });
  expect(wrong.stderr).toMatch(problem);
  expect(wrong.stderr).not.toContain('hush-hush');
});

test('emulator --profile behaves like a cloud, with an ID that is no UUID, and flags override the profile', async () => {
  const emulator = startLatchkey([
    'emulator',
    '--profile',
    'nest',
    '--client',
    'x.apps:y',
    '--scopes',
    'a b',
    '--json',
  ]);
  const line = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
  expect(line).toMatchObject({ client_id: 'x.apps', client_secret: 'y' });
  expect(await (await fetch(`${line['console_url']}settings`)).json()).toMatchObject({
    flows: 'code',
    refresh_token_in_refresh: false,
    scopes: 'a b',
  });
  emulator.process.kill('SIGTERM');
  expect((await emulator.ended).status).toBe(0);

  const tado = startLatchkey(['emulator', '--profile', 'tado']);
  expect(await tado.stdout(/console/)).toMatch(
    /client_id +1bb50063-6b0c-4d11-bd99-387f4a91cc46\n +client_secret +none\n/,
  );
  tado.process.kill('SIGTERM');
  await tado.ended;
});

test('emulator names an options file that does not exist', async () => {
  const wrong = await runLatchkey(['emulator', '--options', '/nonexistent.toml']);
  expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('/nonexistent.toml: ') });
});

test.each([
  [['--port', '70000'], /--port: must be .* 65535 \(found 70000\)/],
  [['--port', 'http'], /--port.*'http'.*whole number/],
  [['--port', '4001', '--frontend-port', '4001'], /--frontend-port: must differ from port \(found 4001\)/],
  [['--allowed-host', 'http://bench'], /--allowed-host: must be a host name .*\(found "http:\/\/bench"\)/],
  [['--client', 'nosecret'], /--client.*ID:SECRET/],
  [['--client', 'hush-hush:a'], /--client: the ID must be a UUID, xxxxxxxx-xxxx/],
  [['--client', `${id}:b`, '--client', `${id}:c`], /--client: each ID must be unique/],
  [['--user', ':pw'], /--user.*NAME:PASSWORD/],
  [['--token-lifetime', '0.5s'], /--token-lifetime: must be .*\(found 0.5\)/],
  [['--code-lifetime', 'soon'], /--code-lifetime.*'soon'/],
  [['--on-reuse', 'ignore'], /--on-reuse.*'ignore'.*refuse, revoke-family/],
  [['--refresh-grace-time', '-1'], /--refresh-grace-time.*'-1'/],
  [['--error-body', 'xml'], /--error-body.*'xml'.*json, html, empty/],
  [['--basic', 'maybe'], /--basic.*'maybe'/],
  [['--profile', 'tadoo'], /--profile.*'tadoo'.*home-connect, tado, /],
  [['--required-headers', 'token:x'], /--required-headers: must be OPERATION:NAME or /],
  [['--ca-file', 'ca.pem'], /--ca-file: needs tls \(found ca.pem without tls\)/],
  [['--tls', '--ca-file', '/nowhere/ca.pem'], /--ca-file: can't write \/nowhere\/ca.pem \(ENOENT\)/],
  [['now'], /too many arguments/],
])('emulator %j is wrong usage', async (args, problem) => {
  const wrong = await runLatchkey(['emulator', ...args]);
  expect(wrong).toMatchObject({ status: 2, stdout: '' });
  expect(wrong.stderr).toMatch(problem);
  expect(wrong.stderr).not.toContain('hush-hush');
});

test('emulator fails in one line if its state file can not be used', async () => {
  const failed = await startLatchkey(['emulator', '--state', '/dev/null/state']).ended;
  expect(failed).toMatchObject({ status: 1, stdout: '' });
  expect(failed.stderr).toMatch(
    /^latchkey: the state file \/dev\/null\/state can't be opened \(ENOTDIR\); choose .*\n$/,
  );
});

test('emulator --tls prints the CA file in its first line, and deletes the file at its end', async () => {
  const emulator = startLatchkey(['emulator', '--tls', '--json']);
  const line = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
  rememberSecrets([line['client_secret'] ?? '']);
  const dispatcher = new Agent({ connect: { ca: readFileSync(line['ca_file'] ?? '', 'utf8') } });
  expect((await request(`${line['base_url']}/api/whoami`, { dispatcher })).statusCode).toBe(401);
  await dispatcher.close();
  emulator.process.kill('SIGTERM');
  expect((await emulator.ended).status).toBe(0);
  expect(existsSync(line['ca_file'] ?? '')).toBe(false);
});

test('emulator fails with the option and the port if the port is in use', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const address = other.address();
  const port = typeof address === 'object' ? address?.port : 0;
  try {
    const failed = await startLatchkey(['emulator', '--port', String(port)]).ended;
    expect(failed).toMatchObject({ status: 1, stdout: '' });
    expect(failed.stderr).toMatch(new RegExp(`^latchkey: .*--port.*${port}\\n$`));
  } finally {
    other.close();
  }
});

test('emulator continues when its standard output is closed', async () => {
  const emulator = startLatchkey(['emulator', '--json']);
  const line = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
  rememberSecrets([line['client_secret'] ?? '']);
  const closed = once(emulator.process.stdout ?? emulator.process, 'close');
  emulator.process.stdout?.destroy();
  await closed;
  for (let times = 0; times < 2; times++)
    expect((await request(`${line['base_url']}/api/whoami`)).statusCode).toBe(401);
  emulator.process.kill('SIGINT');
  expect(await emulator.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
});

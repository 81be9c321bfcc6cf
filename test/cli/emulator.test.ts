import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { createAgent } from '../support/agent.ts';
import { rememberSecrets } from '../support/logs.ts';
import { runLatchkey, spawnLatchkey, startLatchkey } from './command.ts';

const id = '0d9c3a52-6f2a-4f0e-9a51-0d1a7c9b5e11';

type FirstLine = Readonly<Record<string, string>>;

/** Runs an emulator in a shared process, and stops it with SIGINT. @param use gets its first line of output */
async function withEmulator(args: readonly string[], use: (line: FirstLine) => Promise<void>): Promise<void> {
  const emulator = startLatchkey(['emulator', ...args, '--json']);
  try {
    const line = JSON.parse((await emulator.stdout(/\n/)).split('\n')[0] ?? '') as FirstLine;
    if (!args.includes('--client')) rememberSecrets([line['client_secret'] ?? '']);
    await use(line);
  } finally {
    emulator.process.kill('SIGINT');
    expect(await emulator.ended).toMatchObject({ status: 0, stderr: '' });
  }
}

const settingsOf = async (line: FirstLine) => (await fetch(`${line['console_url']}settings`)).json();
const statusOf = async (url: string) => (await fetch(url)).status;

test.each(['SIGINT', 'SIGTERM'] as const)(
  'emulator --json prints its addresses and credentials in the first line, and %s ends it with success',
  async (signal) => {
    const emulator = spawnLatchkey(['emulator', '--json', '--client', `${id}:a:secret`]);
    const line = JSON.parse((await emulator.stdout(/\n/)).split('\n')[0] ?? '') as FirstLine;
    expect(Object.keys(line)).toEqual([
      'base_url',
      'frontend_url',
      'client_id',
      'client_secret',
      'console_url',
      'issuer',
    ]);
    expect(line).toMatchObject({ client_id: id, client_secret: 'a:secret' });
    expect(await statusOf(`${line['base_url']}/api/whoami`)).toBe(401);
    emulator.process.kill(signal);
    expect(await emulator.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
  },
);

test.each<[what: string, args: string[], secret: RegExp]>([
  ['its addresses and credentials in separate lines', [], /client_secret +(?!as given|none)\S+\n/],
  // Its output may be logged.
  ['no secret that it was given', ['--client', `${id}:a-given-secret`], /client_secret +as given\n/],
  ['all clients', ['--client', 'one:secret', '--client', 'two'], /client_id +one, two\n/],
  [
    'the published client of a profile',
    ['--profile', 'tado'],
    /client_id +1bb50063-6b0c-4d11-bd99-387f4a91cc46\n +client_secret +none\n/,
  ],
])('emulator prints for people %s', async (_, args, secret) => {
  const emulator = startLatchkey(['emulator', ...args]);
  const text = await emulator.stdout(/console .*\n/);
  if (args.length === 0) rememberSecrets([/client_secret +(\S+)/.exec(text)?.[1] ?? '']);
  emulator.process.kill('SIGINT');
  expect((await emulator.ended).status).toBe(0);
  for (const word of ['base_url', 'frontend_url', 'client_id']) expect(text).toContain(word);
  expect(text).toMatch(secret);
  expect(text).not.toContain('a-given-secret');
});

test('emulator passes its options to the emulator', async () => {
  const flags = `--host 127.0.0.1 --port 0 --frontend-port 0 --client ${id}:one-secret --user ann:pw --user bob:pw
    --auto-login --code-lifetime 30s --token-lifetime 10m --refresh-lifetime 2h --refresh-grace 1
    --on-reuse revoke-family --basic refuse`;
  await withEmulator(flags.split(/\s+/), async (line) => {
    expect(line).toMatchObject({ client_id: id, client_secret: 'one-secret' });
    expect(await settingsOf(line)).toMatchObject({
      auto_login: true,
      code_lifetime: 30,
      token_lifetime: 600,
      refresh_lifetime: 7200,
      refresh_grace: 1,
      on_reuse: 'revoke-family',
      basic: 'refuse',
    });
  });
});

/** Writes a file with options for an emulator. */
function optionsFile(text: string): string {
  const file = join(mkdtempSync(join(tmpdir(), 'emulator-options-')), 'options.toml');
  writeFileSync(file, text);
  return file;
}

test('emulator reads options from a file, and flags override them', async () => {
  const file = optionsFile(`client = ["${id}:file-secret"]
allowed_host = ["bench.example", "portal"]
auto_login = true
relay_refusal = false
code_lifetime = 30.5
token_lifetime = "10m"
error_body = "html"
rate_limit = 5
`);
  await withEmulator(['--options', file, '--rate-limit', '7', '--refresh-grace-time', '20s'], async (line) => {
    expect(line).toMatchObject({ client_id: id, client_secret: 'file-secret' });
    const response = await request(`${line['console_url']}settings`, { headers: { host: 'portal:8080' } });
    expect(await response.body.json()).toMatchObject({
      auto_login: true,
      relay_refusal: false,
      code_lifetime: 30.5,
      token_lifetime: 600,
      refresh_grace_time: 20,
      error_body: 'html',
      rate_limit: 7,
    });
  });
});

test.each([
  ['version = "x"', /version: unknown key; allowed keys: host, (?!.*version)/],
  ['tokenLifetime = 60', /tokenLifetime: unknown key \(did you mean token_lifetime\?\)$/m],
  ['basic = "maybe"', /basic: must be one of accept, refuse \(found "maybe"\)/],
  [`client = "${id}:hush-hush"`, /client: must be a list \(found a string\)/],
  ['client = [true]', /client: must be a list of strings \(found a list\)/],
  ['[[client]]\nid = "x"\nsecert = "hush-hush"', /client: secert: is unknown \(did you mean secret\?\)/],
  ['[[user]]\nname = "x"', /user: password: is missing/],
  ['[[fault]]\nkind = "hang"\nendpoint = "tokens"', /--fault: endpoint: must be /],
  ['{"basic":', /options\.toml: is not valid JSON/],
  ['basic = ', /line 1 is not valid TOML/],
])('emulator rejects an options file with %j as wrong usage, in one line that names the key', async (text, problem) => {
  const wrong = await runLatchkey(['emulator', '--options', optionsFile(text)]);
  expect(wrong).toMatchObject({ status: 2, stdout: '' });
  expect(wrong.stderr).toMatch(problem);
  expect(wrong.stderr).not.toContain('hush-hush');
});

const SHARED_TOML = `token_lifetime = "10m"

[[client]]
id = "shop"
secret = "shop-secret"
redirect_uris = ["http://localhost:3000/callback"]
post_logout_redirect_uris = ["http://localhost:3000/"]
claims = { tenant = "home" }

[[client]]
id = "app"

[[user]]
name = "ann"
password = "pw"
claims = { email = "ann@example.com", accountId = 7 }

[[fault]]
kind = "status"
endpoint = "whoami"
status = 503
`;
const SHARED_JSON = JSON.stringify({
  token_lifetime: 600,
  client: [
    {
      ...{ id: 'shop', secret: 'shop-secret', redirect_uris: ['http://localhost:3000/callback'] },
      ...{ post_logout_redirect_uris: ['http://localhost:3000/'], claims: { tenant: 'home' } },
    },
    'app',
  ],
  user: [{ name: 'ann', password: 'pw', claims: { email: 'ann@example.com', accountId: 7 } }],
  fault: [{ kind: 'status', endpoint: 'whoami', status: 503 }],
});

test.each([
  ['TOML', SHARED_TOML],
  ['JSON', SHARED_JSON],
])('a team keeps clients, users and faults of an emulator in one file, as %s', async (_, text) => {
  await withEmulator(['--options', optionsFile(text)], async (line) => {
    expect(line).toMatchObject({ client_id: 'shop', client_secret: 'shop-secret' });
    const { base_url: base = '', frontend_url: frontend = '' } = line;
    expect(await statusOf(`${base}/api/whoami`)).toBe(503);
    const redirect_uri = 'http://localhost:3000/callback';
    const authorize = new URLSearchParams({
      client_id: 'shop',
      redirect_uri,
      response_type: 'code',
      scope: 'openid email',
    });
    const authorize_url = `${frontend}/oauth2/authorize?${authorize}`;
    const login = await fetch(`${line['console_url']}login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ authorize_url, user: 'ann' }),
    });
    const { location } = (await login.json()) as { location: string };
    const code = new URL(location).searchParams.get('code') ?? '';
    const form = {
      grant_type: 'authorization_code',
      code,
      client_id: 'shop',
      client_secret: 'shop-secret',
      redirect_uri,
    };
    const answer = await fetch(`${frontend}/oauth2/token`, { method: 'POST', body: new URLSearchParams(form) });
    const { id_token: token, expires_in } = (await answer.json()) as { id_token: string; expires_in: number };
    expect(expires_in).toBe(600);
    expect(decodeJwt(token)).toMatchObject({ sub: 'ann', email: 'ann@example.com', accountId: 7 });
    const bye = 'http://localhost:3000/';
    const logout = new URLSearchParams({ client_id: 'shop', post_logout_redirect_uri: bye });
    const left = await fetch(`${frontend}/oauth2/logout?${logout}`, { redirect: 'manual' });
    expect(left.headers.get('location')).toBe(bye);
    const page = await fetch(`${frontend}/oauth2/authorize?${new URLSearchParams({ client_id: 'app', redirect_uri })}`);
    expect([page.status, await page.text()]).toEqual([400, expect.stringContaining('not registered')]);
  });
});

test.each([[['--client', 'app']], [[]]])(
  'emulator %j --redirect-uri gives its client an address for codes',
  async (args) => {
    const uri = 'http://localhost:3000/callback';
    const uris = ['--redirect-uri', 'https://app.example/', '--redirect-uri', uri];
    await withEmulator(['--auto-login', ...args, ...uris], async (line) => {
      const query = { client_id: line['client_id'] ?? '', response_type: 'code', redirect_uri: uri };
      const authorize = `${line['frontend_url']}/oauth2/authorize?${new URLSearchParams(query)}`;
      const { headers } = await fetch(authorize, { redirect: 'manual' });
      expect(headers.get('location')).toMatch(/^http:\/\/localhost:3000\/callback\?code=/);
    });
  },
);

test('emulator --profile behaves like a cloud, with an ID that is no UUID, and flags override the profile', async () => {
  const args = ['--profile', 'nest', '--client', 'x.apps:y', '--scopes', 'a b'];
  await withEmulator(args, async (line) => {
    expect(line).toMatchObject({ client_id: 'x.apps', client_secret: 'y' });
    expect(await settingsOf(line)).toMatchObject({ flows: 'code', refresh_token_in_refresh: false, scopes: 'a b' });
  });
});

test('emulator --fault adds faults that are in force from the start', async () => {
  const away = '{"kind":"status","endpoint":"whoami","status":503,"times":null}';
  const args = ['--seed', '3', '--fault', away, '--fault', '{"kind":"hang","endpoint":"token"}'];
  await withEmulator(args, async (line) => {
    expect(await statusOf(`${line['base_url']}/api/whoami`)).toBe(503);
    expect(await (await fetch(`${line['base_url']}/_emulator/faults`)).json()).toMatchObject({
      faults: [{ kind: 'status' }, { kind: 'hang', hits: 0, left: 1 }],
    });
  });
});

test.each([
  [['--options', '/nonexistent.toml'], /\/nonexistent\.toml: /],
  [
    ['--fault', '{"kind":"hang","endpoint":"tokens"}'],
    /--fault: endpoint: must be .*\(found "tokens"; did you mean token\?\)/,
  ],
  [['--port', '70000'], /--port: must be .* 65535 \(found 70000\)/],
  [['--port', '4001', '--frontend-port', '4001'], /--frontend-port: must differ from port \(found 4001\)/],
  [['--client', 'app:'], /--client.*Must be ID:SECRET or ID/],
  [['--on-reuse', 'ignore'], /--on-reuse.*'ignore'.*refuse, revoke-family/],
  [['--profile', 'tadoo'], /--profile.*'tadoo'.*bmw, daikin, .*\(did you mean tado\?\)/],
  [['--ca-file', 'ca.pem'], /--ca-file: needs tls \(found ca.pem without tls\)/],
  [['start'], /unknown command 'start'\n\(There are: exam\)\n/],
  [['examine'], /unknown command 'examine'\n\(Did you mean exam\?\)\n/],
])('emulator %j is wrong usage', async (args, problem) => {
  const wrong = await runLatchkey(['emulator', ...args]);
  expect(wrong).toMatchObject({ status: 2, stdout: '' });
  expect(wrong.stderr).toMatch(problem);
});

test('emulator --tls prints the CA file in its first line, and deletes the file at its end', async () => {
  let file = '';
  await withEmulator(['--tls'], async (line) => {
    file = line['ca_file'] ?? '';
    const dispatcher = createAgent({ connect: { ca: readFileSync(file, 'utf8') } });
    expect((await request(`${line['base_url']}/api/whoami`, { dispatcher })).statusCode).toBe(401);
    await dispatcher.close();
  });
  expect(existsSync(file)).toBe(false);
});

test('emulator fails with the option and the port if the port is in use', async () => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  const address = other.address();
  const port = typeof address === 'object' ? address?.port : 0;
  try {
    const failed = await runLatchkey(['emulator', '--port', String(port)]);
    expect(failed).toMatchObject({ status: 1, stdout: '' });
    expect(failed.stderr).toMatch(new RegExp(`^latchkey: .*--port.*${port}\\n$`));
  } finally {
    other.close();
  }
});

test('emulator continues when its standard output is closed', async () => {
  const emulator = spawnLatchkey(['emulator', '--json']);
  const line = JSON.parse(await emulator.stdout(/\n/)) as Record<string, string>;
  rememberSecrets([line['client_secret'] ?? '']);
  const closed = once(emulator.process.stdout ?? emulator.process, 'close');
  emulator.process.stdout?.destroy();
  await closed;
  for (let times = 0; times < 2; times++) expect(await statusOf(`${line['base_url']}/api/whoami`)).toBe(401);
  emulator.process.kill('SIGINT');
  expect(await emulator.ended).toMatchObject({ status: 0, signal: null, stderr: '' });
});

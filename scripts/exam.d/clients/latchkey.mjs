// This hub: it begins with the refresh token by `latchkey connection import`, or with a login by `latchkey pair`, and this
// program is its appliance. It takes tokens from the hub's port on loopback, and reports those that the API refuses
// (docs/appliances.md).
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { env, known } from './program.mjs';

const latchkey = join(import.meta.dirname, '../../../dist/main.js');
const folder = join(env.STATE_DIR, 'hub');
const file = (name) => join(folder, name);
// The hub's own redirect URI is that of the exam. Both ports are below those that systems give to anybody.
const redirectPort = Number(new URL(known.redirectUri).port);
const port = redirectPort - 12_000;
const secret = 'the-secret-of-an-appliance';
const pause = () => new Promise((resolve) => setTimeout(resolve, 1000));

if (!env.OAUTH_ISSUER) process.exit(1);
if (!existsSync(file('latchkey.toml'))) {
  mkdirSync(file('state'), { recursive: true, mode: 0o700 });
  const write = (name, text) => writeFileSync(file(name), text, { mode: 0o600 });
  write('appliance.secret', secret);
  if (known.secret) write('portal.secret', known.secret);
  write(
    'latchkey.toml',
    `hub = { state_dir = "${file('state')}" }
lan = { http_port = ${redirectPort}, https_port = 0, listen = ["127.0.0.1"], address = "127.0.0.1", mdns = false }
local = { port = ${port} }
metrics = { listen = "" }
[portals.cloud]
issuer = ${JSON.stringify(env.OAUTH_ISSUER)}
client_id = ${JSON.stringify(known.id)}
${known.secret ? 'client_secret_file = "portal.secret"' : ''}
login = "${env.OAUTH_AUTHORIZATION_ENDPOINT ? 'redirect' : 'device'}"
[appliances.exam]
connection = "exam"
secret_file = "appliance.secret"
[connections.exam]
`,
  );
}
const config = ['--config', file('latchkey.toml')];

/** Asks an endpoint of the hub. @throws if it does not respond with JSON */
async function ask(path, form) {
  const authorization = `Basic ${Buffer.from(`exam:${secret}`).toString('base64')}`;
  const url = `http://127.0.0.1:${port}/oauth/${path}`;
  const response = await fetch(url, { method: 'POST', headers: { authorization }, body: new URLSearchParams(form) });
  return response.json();
}
const askForToken = () => ask('token', { grant_type: 'client_credentials' }).catch(() => null);

// A second program with this folder is one more appliance of the hub that runs.
if ((await askForToken()) === null) {
  const serve = spawn(process.execPath, [latchkey, 'serve', ...config], { stdio: 'inherit' });
  serve.on('exit', (status) => process.exit(status ?? 1));
  process.on('SIGTERM', () => serve.kill());
  while ((await askForToken()) === null) await pause();
}
if (!env.OAUTH_REFRESH_TOKEN) {
  if ((await askForToken())?.access_token === undefined) pair();
} else if (!existsSync(file('imported'))) {
  const input = env.OAUTH_REFRESH_TOKEN;
  execFileSync(process.execPath, [latchkey, 'connection', 'import', 'exam', ...config], {
    input,
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  writeFileSync(file('imported'), '');
}

/** Begins a login, and prints its addresses. */
function pair() {
  const pairing = spawn(process.execPath, [latchkey, 'pair', 'exam', '--json', ...config], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  createInterface({ input: pairing.stdout }).on('line', (line) => {
    const { authorize_url: url } = JSON.parse(line);
    if (url) console.log(url);
  });
}

async function call() {
  const { access_token: token, expires_in: lifetime } = (await askForToken()) ?? {};
  if (token === undefined) return;
  const end = performance.now() + 1000 * lifetime;
  const { status } = await fetch(env.API_URL, { headers: { authorization: `Bearer ${token}` } });
  if (status === 401 && performance.now() < end) await ask('revoke', { token });
}
for (; ; await pause()) {
  await Promise.allSettled(Array.from({ length: Number(env.API_CONCURRENCY) || 1 }, call));
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import { expect, it } from 'vitest';
import { readExamples } from '../emulator/examples/guide.ts';
import { root } from '../project/checkout.ts';
import { whoami } from '../reliability/load.ts';
import { createAgent } from '../support/agent.ts';
import { eventually } from '../support/hub-process.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import { SHARED_CACHE } from '../support/program.ts';
import { stateFolder } from '../support/state-folder.ts';

it('with the commands of the README an appliance gets a token that the cloud accepts from a hub in test mode', async () => {
  const [serve = '', addAndPair = '', ask = ''] = readExamples('Your appliance', 'sh', 'README.md');
  const [add = '', pair = ''] = addAndPair.trim().split('\n');
  using folder = stateFolder();
  symlinkSync(join(root, 'scripts'), join(folder.path, 'scripts'));
  const env = {
    PATH: process.env['PATH'],
    HOME: folder.path,
    XDG_STATE_HOME: folder.path,
    XDG_CACHE_HOME: SHARED_CACHE,
    LATCHKEY_LAN_ADDRESS: '127.0.0.1',
    LATCHKEY_LAN_LISTEN: '127.0.0.1',
    LATCHKEY_LAN_MDNS: 'false',
    LATCHKEY_LAN_HTTP_PORT: '0',
    LATCHKEY_LAN_HTTPS_PORT: '0',
  };
  await using running = new AsyncDisposableStack();
  /** Starts commands in a shell. What they print is kept out of the logs: it has the client secret. */
  const start = (commands: string, more: NodeJS.ProcessEnv = {}) => {
    const child = spawn('/bin/sh', ['-euc', commands], { cwd: folder.path, env: { ...env, ...more } });
    const output = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text) => {
        output[name] += text;
      });
    }
    const ended = once(child, 'close').then(([status]) => ({ status, ...output }));
    running.defer(async () => {
      child.kill('SIGTERM');
      await ended;
    });
    return { child, output, ended };
  };

  const hub = start(`exec ${serve}`);
  hub.child.stderr.pipe(createWriteStream(logFile('test-mode-hub'), { mode: 0o600 }));
  const baseUrl = await eventually(async () => / CLOUD=(\S+)\n/.exec(hub.output.stderr)?.[1]);

  const added = await start(add).ended;
  expect(added, added.stderr).toMatchObject({ status: 0 });
  const [, line = ''] = /^ *export (.*CLIENT_SECRET.*)$/m.exec(added.stdout) ?? [];
  const variables = Object.fromEntries(line.split(' ').map((word) => word.split(/=(.*)/s, 2)));
  rememberSecrets([variables['CLIENT_SECRET'] ?? '']);

  const pairing = start(`exec ${pair}`);
  const link = await eventually(async () => /https?:\S+state=\S+/.exec(pairing.output.stdout)?.[0]);
  const login = new URLSearchParams({ username: 'demo', password: 'demo', action: 'login' });
  expect(await (await fetch(link, { method: 'POST', body: login })).text()).toContain('wallbox is connected');
  expect(await pairing.ended).toMatchObject({ status: 0 });

  // Not every machine has curl: here its arguments and its input are printed.
  const asked = await start(`curl() { printf '%s\\n' "$@"; cat; }\n${ask}`, variables).ended;
  expect(asked).toMatchObject({ status: 0, stderr: '' });
  const [, caFile = '', , , , body = '', url = '', user = ''] = asked.stdout.split('\n');
  const [, credentials = ''] = /^user = "(.*)"$/.exec(user) ?? [];
  const dispatcher = createAgent({ connect: { ca: readFileSync(join(folder.path, caFile), 'utf8') } });
  running.defer(() => dispatcher.destroy());
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  const headers = { authorization, 'content-type': 'application/x-www-form-urlencoded' };
  const response = await request(url, { method: 'POST', headers, body, dispatcher });
  const token = (await response.body.json()) as Record<string, unknown>;
  expect(token).toMatchObject({ token_type: 'Bearer', scope: 'Monitoring RemoteControl' });
  rememberSecrets([String(token['access_token'])]);
  expect(await whoami({ baseUrl }, token['access_token'])).toBe(200);

  const [withoutBrowser = ''] = readExamples('What the hub offers', 'sh', 'docs/appliances.md');
  const noBrowser = await start(`curl() { printf '%s\\n' "$@"; }\n${withoutBrowser}`, { CLOUD: baseUrl }).ended;
  expect(noBrowser).toMatchObject({ status: 0, stderr: '' });
  // The arguments of the second command end with what the first one has printed: its own.
  const [, , , header = '', , json = '', api = ''] = noBrowser.stdout.split('\n').slice(5);
  const sent = { method: 'POST', headers: Object.fromEntries([header.split(': ')]), body: json };
  const { location } = (await (await fetch(api, sent)).json()) as { location: string };
  expect((await fetch(location)).status).toBe(200);
  await eventually(async () => {
    const { grants } = (await (await fetch(`${baseUrl}/_emulator/grants`)).json()) as { grants: unknown[] };
    return grants.length === 2;
  });

  const [desk = ''] = readExamples('Try the errors on your desk', 'sh', 'docs/appliances.md');
  const page = readFileSync(join(root, 'docs/appliances.md'), 'utf8');
  const mistakes = [...page.matchAll(/^\| the cloud .* \| `(emulator .*?)` \|/gm)];
  expect(mistakes).toHaveLength(3);
  mkdirSync(join(folder.path, 'examples'));
  writeFileSync(join(folder.path, 'examples/appliance.sh'), `echo '${JSON.stringify(token)}'`, { mode: 0o600 });
  for (const [, mistake = ''] of mistakes) {
    const curl = `curl() { printf '%s\n' "$@"; }\n${desk}\n${mistake}`;
    const printed = await start(curl, { CLOUD: baseUrl }).ended;
    const [, , , , json = '', api = ''] = printed.stdout.split('\n');
    expect((await fetch(api, { ...sent, body: json })).ok, mistake).toBe(true);
    expect(await whoami({ baseUrl }, token['access_token']), mistake).toBe(401);
  }
});

import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { NoticeMessage } from '../../src/core/health/notice.ts';
import type { Emulator } from '../../src/emulator/index.ts';
import { HubClient } from '../lan/hub-client.ts';
import { root } from '../project/checkout.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PageVisitor } from '../support/page-visitor.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';

/** A secret that a webhook's address and a hook's arguments may contain. */
const SECRETS = { path: 'ntfy-topic-7f3a9c2e51', argument: 'bot-token-4be81d07a9' };

const NOTICES_PAGE = join(root, 'docs/notices.md');
/** The notice that the page shows. */
const SAMPLE = /```json\n\{"status":"raised".*?\n```/s;

let emulator: Emulator;
let hub: HubProcess;
let clientId: string;
const posted: NoticeMessage[] = [];
const server = createServer((request, response) => {
  void take(request).then(() => response.writeHead(204).end());
});

async function take(request: IncomingMessage): Promise<void> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  posted.push(JSON.parse(text) as NoticeMessage);
}

setUpOnce(async (parts) => {
  rememberSecrets(Object.values(SECRETS));
  emulator = parts.use(await startPortal());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  parts.defer(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const script = 'cat >> "$0"; echo "$1" >/dev/null';
  hub = parts.use(
    await HubProcess.prepare({
      emulator,
      here: true,
      env: { LATCHKEY_NOTIFY_WEBHOOK: `http://127.0.0.1:${port}/${SECRETS.path}` },
    }),
  );
  const command = ['sh', '-c', script, join(hub.directory, 'told'), SECRETS.argument];
  const file = join(hub.directory, 'latchkey.toml');
  await writeFile(file, `${await readFile(file, 'utf8')}\n[notify]\ncommand = ${JSON.stringify(command)}\n`);
  await hub.launch();
  clientId = (await hub.addAppliance('wallbox')).client_id;
  await hub.pair('wallbox', emulator);
});

async function byCommand(): Promise<NoticeMessage[]> {
  const text = await readFile(join(hub.directory, 'told'), 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as NoticeMessage);
}

test('a revoked grant is reported on every surface after one refresh, with the appliance and what to do', async () => {
  expect((await hub.status()).notices).toEqual([]);
  expect(posted).toEqual([]);
  for (const { id } of emulator.grants()) emulator.revoke(id);
  expect(await hub.ask((control) => control.request('refresh', { name: 'wallbox' }))).toMatchObject({
    state: 'needs_pairing',
  });
  const page = `https://127.0.0.1:${hub.httpsPort}/`;
  const expected = {
    severity: 'error',
    appliance: 'wallbox',
    message: expect.stringContaining('wallbox is no longer connected'),
    what_to_do: expect.stringContaining(`${page}appliances/wallbox or run "latchkey pair wallbox"`),
  };
  expect((await hub.status()).notices).toMatchObject([{ ...expected, code: 'pairing_needed' }]);
  const asText = await hub.cli('status');
  expect(asText.status).toBe(3);
  expect(asText.stdout.split('\n')[0]).toMatch(
    /^! wallbox is no longer connected: .* Log in again to connect wallbox: open https/,
  );

  const raised = { ...expected, notice: 'pairing_needed', status: 'raised' };
  const { id } = (await hub.status()).hub;
  await eventually(async () => posted.length > 0 && (await byCommand()).length > 0);
  expect(posted).toMatchObject([{ ...raised, hub: { id, name: 'Test hub', page } }]);
  expect(await byCommand()).toEqual(posted);
  const sample = JSON.stringify(posted[0])
    .replaceAll(page, 'https://192.168.1.7:8443/')
    .replaceAll(id, 'latchkey-1a2b3c')
    .replaceAll('Test hub', 'Cellar hub')
    .replace(/"since":"[^"]*"/, '"since":"2031-04-05T06:07:08Z"');
  const document = await readFile(NOTICES_PAGE, 'utf8');
  // Otherwise run this test with -u.
  await expect(document.replace(SAMPLE, () => `\`\`\`json\n${sample}\n\`\`\``)).toMatchFileSnapshot(NOTICES_PAGE);
  expect(hub.events('notice')).toMatchObject([{ ...raised, level: 'error' }]);
});

test('notify --test reports the result of each hook', async () => {
  const { status, stdout } = await hub.cli('notify', '--test');
  expect(stdout).toMatch(
    /^command sh: ok \(done\)\nwebhook http:\/\/127\.0\.0\.1:\d+: ok \(responded with HTTP 204\)\n$/,
  );
  expect(status).toBe(0);
  expect(posted.at(-1)).toMatchObject({ notice: 'test', status: 'raised', appliance: null });
  expect(await hub.cli('notify')).toMatchObject({ status: 2, stderr: expect.stringContaining('--test') });
});

test('another pairing keeps the appliance, and its notice is resolved on every surface', async () => {
  await hub.pair('wallbox', emulator);
  const { appliances, notices } = await hub.status();
  expect(notices).toEqual([]);
  expect(appliances).toMatchObject([{ name: 'wallbox', client_id: clientId, state: 'active' }]);
  const resolved = await eventually(async () => posted.find((message) => message.status === 'resolved'));
  expect(resolved).toMatchObject({
    notice: 'pairing_needed',
    appliance: 'wallbox',
    message: 'wallbox is connected again',
  });
  expect(await eventually(async () => (await byCommand()).find((message) => message.status === 'resolved'))).toEqual(
    resolved,
  );
  expect(hub.events('notice').slice(1)).toMatchObject([{ status: 'resolved', appliance: 'wallbox', level: 'info' }]);
});

test('a reload applies changed hooks for notices', async () => {
  const file = join(hub.directory, 'latchkey.toml');
  const text = await readFile(file, 'utf8');
  await writeFile(file, text.replace(/^command = .*$/m, `command = ["sh", "-c", "echo no such user >&2; exit 7"]`));
  await hub.reload();
  const { status, stdout, stderr } = await hub.cli('notify', '--test', '--json');
  expect(status).toBe(1);
  expect(stderr).toContain('the test notice could not be sent to the command of [notify]');
  expect(JSON.parse(stdout)[0]).toEqual({
    hook: 'command',
    target: 'sh',
    ok: false,
    detail: 'exited with status 7: no such user',
  });
});

test('the hub sends a notice at once when an appliance asks to join', async () => {
  await hub.ask((control) => control.request('openRegistration', { open_for: 600 }));
  await using client = await HubClient.of(hub);
  await client.register({ client_name: 'lamp' });
  const posting = await eventually(async () => posted.find(({ notice }) => notice === 'approval_needed'));
  expect(posting).toMatchObject({ appliance: 'lamp', status: 'raised', severity: 'warning' });
});

test('wrong setup codes lead to one notice with the address, and status ends with 0', async () => {
  await using attacker = await PageVisitor.open(hub, '127.0.0.66');
  for (let count = 0; count < 15; count++) await attacker.signIn('BBBB-BBBB-BBBB-BBBB');
  const { status, stdout } = await hub.cli('status', '--json');
  expect(status).toBe(0);
  const expected = { severity: 'warning', appliance: null, message: expect.stringContaining('from 127.0.0.66') };
  expect(JSON.parse(stdout).notices).toContainEqual(
    expect.objectContaining({ ...expected, code: 'wrong_setup_codes' }),
  );
  const [condition] = JSON.parse(stdout).conditions;
  expect(condition).toMatchObject({ code: 'wrong_setup_codes', address: '127.0.0.66' });
  // The hub checks for notices each minute, and at every event.
  await hub.ask((control) => control.request('refresh', { name: 'wallbox' }));
  const wrongCodeNotices = () => posted.filter(({ notice }) => notice === 'wrong_setup_codes');
  await eventually(async () => wrongCodeNotices().length > 0);
  expect(wrongCodeNotices()).toMatchObject([{ ...expected, status: 'raised' }]);
  expect(hub.events('notice').at(-1)).toMatchObject({ ...expected, notice: 'wrong_setup_codes', level: 'warn' });
  expect(JSON.stringify(posted)).not.toContain('BBBB');
});

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { rememberSecrets } from '../../support/logs.ts';
import { runLatchkey, runShell, shareFakeAdministration } from '../command.ts';
import type { CliResult } from '../running-command.ts';

const hub = shareFakeAdministration();
const { administration } = hub;

const TOKEN = `rt-${crypto.randomUUID()}`;
rememberSecrets([TOKEN]);
const file = join(mkdtempSync(join(tmpdir(), 'lk-')), 'token');

beforeEach(() => {
  administration.appliances.clear();
  administration.addedConnections.clear();
  administration.imports.length = 0;
});

/** Runs `latchkey connection import` with these arguments. @param input of the command */
function importGrant(input: string, ...args: string[]): Promise<CliResult> {
  return runLatchkey(['connection', 'import', ...args], hub.env, input);
}

test('connection import reads the refresh token from standard input, and says what to do next', async () => {
  writeFileSync(file, `${TOKEN}\n`);
  const command = `$LATCHKEY connection import cloud --scope 'A B' --portal home < ${file}`;
  const { status, stdout, stderr } = await runShell(command, hub.env);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  expect(stdout.split('\n')).toEqual([
    'cloud is connected: the hub has taken the login over.',
    expect.stringMatching(/^Stop the other program now, .* would log the hub out\.$/),
    'To let an appliance use it: latchkey appliance add APPLIANCE --connection cloud',
    '',
  ]);
  const [request] = administration.imports;
  expect(request).toMatchObject({ name: 'cloud', scope: 'A B', portal: 'home', replace: false });
  expect(request?.refreshToken.reveal()).toBe(TOKEN);
});

test('connection import --json prints the documented members, and the warning on standard error', async () => {
  const { status, stdout, stderr } = await importGrant(`\r\n ${TOKEN}\r\n`, 'cloud', '--json');
  expect(status).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ name: 'cloud', state: 'active', scope: null });
  expect(stderr).toMatch(/^Stop the other program now/);
  expect(stdout + stderr).not.toContain(TOKEN);
});

test.each([
  ['nothing', '', /standard input is empty/],
  ['several lines', `${TOKEN}\n${TOKEN}\n`, /has several lines/],
  ['a control character', `${TOKEN}\u001b[2J`, /not printable ASCII/],
  ['a long file', `${TOKEN}\n`.repeat(100_000), /has more than 16384 characters/],
])('connection import rejects %s in one line that does not show it', async (_, input, problem) => {
  const { status, stdout, stderr } = await importGrant(input, 'cloud');
  expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  expect(stderr).toMatch(/^latchkey: [\P{Cc}]{1,400}\n$/u);
  expect(stderr).toMatch(problem);
  expect(stderr).toContain('nothing was done');
  expect(stderr).not.toContain(TOKEN);
  expect(administration.imports).toEqual([]);
});

test('connection import replaces a grant only with --yes', async () => {
  administration.setConnection({ name: 'cloud', state: 'needs_pairing', scope: 'A' });
  const refused = await importGrant(TOKEN, 'cloud');
  expect(refused).toMatchObject({ status: 1, stdout: '' });
  expect(refused.stderr).toMatch(/^latchkey: cloud has a grant already, .* run the command again with --yes\n$/);
  expect(administration.imports).toEqual([]);
  expect(await importGrant(TOKEN, 'cloud', '--yes')).toMatchObject({ status: 0 });
  expect(administration.imports).toMatchObject([{ replace: true }]);
});

test('connection import asks for the token on a terminal, and does not show it', async () => {
  const { status, stdout } = await hub
    .onTerminal('connection', 'import', 'cloud')
    .reply(/refresh token: /, `${TOKEN}\r`);
  expect(status).toBe(0);
  expect(stdout).toContain('cloud is connected');
  expect(stdout).not.toContain(TOKEN);
  expect(administration.imports[0]?.refreshToken.reveal()).toBe(TOKEN);
});

test.each(['\u0003', '\r'])('Ctrl-C and an empty line at the question import nothing', async (key) => {
  const { status, stdout } = await hub.onTerminal('connection', 'import', 'cloud').reply(/refresh token: /, key);
  expect({ status, imports: administration.imports }).toEqual({ status: 1, imports: [] });
  expect(stdout).toMatch(/latchkey: .*nothing was done/);
});

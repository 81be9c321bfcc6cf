import { execFileSync } from 'node:child_process';
import { beforeEach, expect, test, vi } from 'vitest';
import { startControlServer } from '../../../src/control/server.ts';
import { createLog } from '../../../src/system/log.ts';
import { waitFor } from '../../support/wait-for.ts';
import {
  serveFakeAdministration,
  shareFakeAdministration,
  spawnOnTerminal,
  startLatchkey,
  startOnTerminal,
} from '../command.ts';

const ENTER = '\u001b[?1049h';
const LEAVE = '\u001b[?1049l';
const CURSOR = '\u001b[?25h';

const hub = shareFakeAdministration();

beforeEach(() => {
  hub.administration.appliances.clear();
  hub.administration.set({ name: 'wallbox', state: 'pairing', scope: 'A' });
});

test.each([
  ['Ctrl-C', '\u0003'],
  ['SIGTERM', 'SIGTERM'],
])('status --watch redraws on a terminal, and restores it at %s', async (_, end) => {
  const running = spawnOnTerminal(['status', '--watch'], hub.env);
  await running.stdout(/wallbox +\S*pairing/);
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A', expiresIn: 740 });
  const seen = await running.stdout(/wallbox +\S*active/);
  expect(seen).toContain(ENTER);
  expect(seen).not.toContain(LEAVE);
  if (end === 'SIGTERM') {
    // `script` does not forward the signal to its child, the command on the terminal.
    execFileSync('/usr/bin/pkill', ['-TERM', '-P', String(running.process.pid)]);
  } else running.process.stdin?.write(end);
  const { status, stdout } = await running.ended;
  expect(status).toBe(0);
  expect(stdout.endsWith(CURSOR + LEAVE)).toBe(true);
  expect(stdout.split(ENTER)).toHaveLength(2);
});

test('status --watch says that the hub is unreachable, and continues when it is back', async () => {
  const restarted = await serveFakeAdministration();
  restarted.administration.set({ name: 'wallbox', state: 'pairing' });
  const path = restarted.env.LATCHKEY_HUB_CONTROL_SOCKET;
  const screen = startOnTerminal(['status', '--watch'], restarted.env, 80);
  const lines = startLatchkey(['status', '--watch'], restarted.env);
  const json = startLatchkey(['status', '--watch', '--json'], restarted.env);
  await Promise.all([screen.stdout(/pairing/), lines.stdout(/pairing/), json.stdout(/pairing/)]);
  await restarted[Symbol.asyncDispose]();
  const away = /the hub does not respond, trying again/;
  await Promise.all([screen.stdout(away), lines.stdout(away), json.stderr(away)]);
  const { administration } = restarted;
  administration.set({ name: 'wallbox', state: 'active' });
  await using _again = await startControlServer({ path, administration, log: createLog('silent') });
  await Promise.all([screen.stdout(/active/), lines.stdout(/back.*active/s), json.stdout(/active/)]);
  screen.process.stdin?.write('\u0003');
  for (const running of [lines, json]) running.process.kill('SIGINT');
  for (const running of [screen, lines, json]) expect((await running.ended).status).toBe(0);
  expect((await lines.ended).stdout.match(/does not respond/g)).toHaveLength(1);
  expect((await json.ended).stderr).toBe('the hub does not respond, trying again\n');
});

test('status --watch prints a line for each change without a screen, and none if only time has passed', async () => {
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A', expiresIn: 740 });
  const dumb = startOnTerminal(['status', '--watch'], { ...hub.env, TERM: 'dumb' }, 80);
  const piped = startLatchkey(['status', '--watch'], hub.env);
  const json = startLatchkey(['status', '--watch', '--json'], hub.env);
  await Promise.all([dumb.stdout(/active/), piped.stdout(/active/), json.stdout(/active/)]);
  hub.administration.set({ name: 'wallbox', state: 'active', scope: 'A', expiresIn: 739 });
  const statusCalls = vi.spyOn(hub.administration, 'status');
  await waitFor(() => expect(statusCalls.mock.calls.length).toBeGreaterThan(5), 10_000);
  statusCalls.mockRestore();
  const since = new Date(0).toISOString();
  const problem = { code: 'refused', message: 'the portal refused it\u001b[2J', since } as const;
  hub.administration.set({ name: 'wallbox', state: 'needs_pairing', scope: 'A', problem });
  await Promise.all([dumb.stdout(/refused/), piped.stdout(/refused/), json.stdout(/refused/)]);
  hub.administration.appliances.clear();
  await Promise.all([dumb.stdout(/removed/), piped.stdout(/removed/), json.stdout(/"appliances":\[\]/)]);
  dumb.process.stdin?.write('\u0003');
  for (const running of [piped, json]) running.process.kill('SIGTERM');
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /;
  for (const running of [dumb, piped]) {
    const { status, stdout } = await running.ended;
    expect(status).toBe(0);
    expect(stdout).not.toContain('\u001b');
    const changes = stdout
      .replaceAll('\r', '')
      .split('\n')
      .filter((line) => time.test(line))
      .map((line) => line.replace(time, ''));
    expect(changes).toEqual([
      'wallbox active, scope A',
      'wallbox needs_pairing, scope A, the portal refused it\ufffd[2J',
      'wallbox was removed',
    ]);
  }
  const objects = (await json.ended).stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(objects.map(({ appliances }) => appliances[0]?.state)).toEqual(['active', 'needs_pairing', undefined]);
  expect(Object.keys(objects[0])).toEqual(expect.arrayContaining(['hub', 'appliances', 'notices']));
});

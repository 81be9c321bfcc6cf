import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { clearLeftovers } from '../../scripts/test.d/leftovers.ts';
import { eventually } from '../support/hub-process.ts';
import { isRunning } from '../support/processes.ts';
import { root, temporaryFolder } from './checkout.ts';

/** A test run that starts a session of two processes, prints their process ids and waits. */
const RUN = `
  const { spawn } = await import('node:child_process');
  const { rememberSession } = await import(process.argv[1]);
  const shell = spawn('/bin/sh', ['-c', 'sleep 1000 & echo $!; wait'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  shell.stdout.on('data', (text) => {
    rememberSession(process.argv[2], shell.pid, [process.argv[3]]);
    console.log(shell.pid + ' ' + text);
  });`;

test('a test run ends the processes of a killed run, and leaves those of a running one alone', async () => {
  using folder = temporaryFolder();
  const session = join(folder.path, 'session.json');
  const script = join(root, 'scripts/test.d/leftovers.ts');
  const scratch = mkdtempSync(join(folder.path, 'scratch-'));
  const run = spawn(process.execPath, ['--input-type=module', '-e', RUN, script, session, scratch], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [output] = (await once(createInterface({ input: run.stdout }), 'line')) as [string];
  const left = output.trim().split(' ').map(Number);
  onTestFinished(() => {
    for (const pid of [run.pid ?? 0, ...left]) if (isRunning(pid)) process.kill(pid, 'SIGKILL');
  });
  expect(left).toHaveLength(2);

  const folders = [run.pid ?? 0, process.pid].map((pid) => mkdtempSync(join(tmpdir(), `latchkey-${pid} left-`)));
  onTestFinished(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });

  const remembered = readFileSync(session);
  clearLeftovers(session);
  await sleep(200); // a killed process takes a moment to end
  expect(left.map(isRunning)).toEqual([true, true]);
  expect([scratch, ...folders].map((path) => existsSync(path))).toEqual([true, true, true]);

  run.kill('SIGKILL');
  await once(run, 'exit');
  writeFileSync(session, remembered);
  clearLeftovers(session);
  await eventually(async () => !left.some(isRunning));
  expect([scratch, ...folders].map((path) => existsSync(path))).toEqual([false, false, true]);
});

test('a test run removes the cgroups of machines whose tests were killed', async (ctx) => {
  const hierarchy = ['/sys/fs/cgroup/unified', '/sys/fs/cgroup'].find((path) => existsSync(join(path, 'cgroup.procs')));
  if (process.getuid?.() !== 0 || hierarchy === undefined) return ctx.skip('cgroups cannot be created here');
  const dead = spawn('/bin/true');
  await once(dead, 'exit');
  const [left, own] = [dead.pid, process.pid].map((pid) => join(hierarchy, `latchkey-test-${pid}-9999`));
  for (const path of [join(left ?? '', 'inner'), own ?? '']) mkdirSync(path, { recursive: true });
  onTestFinished(() => rmdirSync(own ?? ''));
  using folder = temporaryFolder();
  clearLeftovers(join(folder.path, 'session.json'));
  expect([left, own].map((path) => existsSync(path ?? ''))).toEqual([false, true]);
});

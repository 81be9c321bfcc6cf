import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
    rememberSession(process.argv[2], shell.pid);
    console.log(shell.pid + ' ' + text);
  });`;

test('a test run ends the processes of a killed run, and leaves those of a running one alone', async () => {
  using folder = temporaryFolder();
  const session = join(folder.path, 'session.json');
  const script = join(root, 'scripts/test.d/leftovers.ts');
  const run = spawn(process.execPath, ['--input-type=module', '-e', RUN, script, session], {
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
  expect(folders.map((path) => existsSync(path))).toEqual([true, true]);

  run.kill('SIGKILL');
  await once(run, 'exit');
  writeFileSync(session, remembered);
  clearLeftovers(session);
  await eventually(async () => !left.some(isRunning));
  expect(folders.map((path) => existsSync(path))).toEqual([false, true]);
});

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import { MAIN, SHARED_CACHE } from '../support/program.ts';
import { waitFor } from '../support/wait-for.ts';

/** Starts a daemon that does this when it gets SIGUSR2. */
async function serve(hub: HubProcess, stderr: string, onSignal = ''): Promise<ChildProcess> {
  const preload = `--import=data:text/javascript,process.on('SIGUSR2',()=>{${encodeURIComponent(onSignal)}})`;
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', join(hub.directory, 'latchkey.toml')], {
    env: { PATH: process.env['PATH'], HOME: hub.directory, XDG_CACHE_HOME: SHARED_CACHE, NODE_OPTIONS: preload },
    stdio: ['ignore', 'ignore', openSync(stderr, 'a')],
  });
  await eventually(() => hub.ask((control) => control.status()).catch(() => null));
  return child;
}

describe.concurrent('what nobody has caught', () => {
  test.each([
    ['unhandledRejection', "Promise.reject(new Error('planted'))"],
    ['uncaughtException', "throw new Error('planted')"],
  ])('(%s) ends the daemon with status 1 and one event', async (origin, onSignal) => {
    await using emulator = await startEmulator();
    await using hub = await HubProcess.prepare({ emulator });
    const log = logFile('hub');
    const child = await serve(hub, log, onSignal);
    child.kill('SIGUSR2');
    expect(await once(child, 'exit')).toEqual([1, null]);
    const last = readFileSync(log, 'utf8').trimEnd().split('\n').at(-1) ?? '';
    expect(JSON.parse(last)).toMatchObject({
      level: 'error',
      event: 'crashed',
      origin,
      error: 'planted',
      at: expect.stringMatching(/^at /),
    });
  });
});

test('a log that can not be written does not end the daemon', async () => {
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const child = await serve(hub, '/dev/full');
  for (let i = 0; i < 5; i++) await hub.ask((control) => control.addAppliance(`appliance-${i}`, null, null));
  await sleep(200);
  expect(child.exitCode).toBe(null);
  child.kill('SIGTERM');
  await waitFor(() => expect(child.exitCode).toBe(0), 10_000);
});

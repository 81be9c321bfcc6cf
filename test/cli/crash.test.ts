import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startEmulator } from '../../src/emulator/index.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { supervise, superviseUntilReady } from '../systemd/supervised.ts';

describe.concurrent('uncaught errors of the daemon', () => {
  test.each([
    ['unhandledRejection', "Promise.reject(new Error('planted'))"],
    ['uncaughtException', "throw new Error('planted')"],
  ])(
    'an error that nothing catches (%s) ends the daemon with status 1 and one event, so that systemd restarts it',
    async (origin, onSignal) => {
      await using emulator = await startEmulator();
      await using hub = await HubProcess.prepare({ emulator });
      await using daemon = await superviseUntilReady(hub, '', { onSignal });
      daemon.child.kill('SIGUSR2');
      expect(await daemon.ended).toEqual({ status: 1, signal: null });
      expect(daemon.events().at(-1)).toMatchObject({
        priority: 3,
        level: 'error',
        event: 'crashed',
        origin,
        error: 'planted',
        at: expect.stringMatching(/^at /),
      });
    },
  );
});

test('the daemon continues if its log can not be written', async () => {
  await using emulator = await startEmulator();
  await using hub = await HubProcess.prepare({ emulator });
  const within = ['/bin/sh', '-c', 'exec "$@" 2>/dev/full', 'sh'];
  await using daemon = supervise(hub, '', { within, env: { JOURNAL_STREAM: undefined } });
  await eventually(() => hub.status().catch(() => null));
  for (let i = 0; i < 5; i++) await hub.addAppliance(`appliance-${i}`);
  await sleep(200);
  expect(daemon.child.exitCode).toBe(null);
  daemon.child.kill('SIGTERM');
  expect(await daemon.ended).toEqual({ status: 0, signal: null });
});

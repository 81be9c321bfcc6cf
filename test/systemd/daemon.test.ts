import { mkdtempSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { NotifySocket, systemdSkipReason } from '../support/notify-socket.ts';
import { startPortal } from '../support/portal.ts';
import { supervise } from './supervised.ts';

test.skipIf(systemdSkipReason)(
  'a daemon tells systemd that it is ready, reloads, is alive and stops, and its status, and nothing else',
  async () => {
    await using socket = await NotifySocket.listen();
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const cache = mkdtempSync(join(tmpdir(), 'latchkey-cache-'));
    const env = { WATCHDOG_USEC: '1500000', CACHE_DIRECTORY: cache };
    await using daemon = supervise(hub, socket.path, { env });
    await socket.waitForAssignment('READY=1');
    expect(socket.valuesOf('STATUS')).toEqual(['no appliances yet']);
    // Kept from the start: most hubs end by a power cut.
    expect(readdirSync(cache)).not.toEqual([]);
    await hub.addAppliance('wallbox', 'Monitoring');
    await socket.waitForAssignment('STATUS=1 unpaired');
    await hub.pair('wallbox', emulator);
    await socket.waitForAssignment('STATUS=1 active');
    const keepAlives = socket.valuesOf('WATCHDOG').length;
    await eventually(async () => socket.valuesOf('WATCHDOG').length >= keepAlives + 3);

    // A reload with a wrong configuration is none.
    const file = join(hub.directory, 'latchkey.toml');
    const valid = await readFile(file, 'utf8');
    await writeFile(file, valid.replace('name = ', 'nome = '));
    await expect(hub.ask((control) => control.request('reload'))).rejects.toThrow('hub.nome');
    await writeFile(file, valid);
    await hub.reload();
    await eventually(async () => socket.valuesOf('READY').length === 2);
    const transitions = socket.messages.flat().filter((part) => /^(READY|RELOADING)=/.test(part));
    expect(transitions).toEqual(['READY=1', 'RELOADING=1', 'READY=1']);

    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    await socket.waitForAssignment('STOPPING=1');
    expect(new Set(socket.messages.flat().map((part) => part.split('=')[0]))).toEqual(
      new Set(['READY', 'STATUS', 'WATCHDOG', 'RELOADING', 'MONOTONIC_USEC', 'STOPPING']),
    );
    expect(daemon.events().find(({ event }) => event === 'connection_paired')).toMatchObject({ priority: 6 });
  },
);

test('a wrong configuration ends the daemon with status 78 and one line, so that systemd does not restart it', async () => {
  await using emulator = await startPortal();
  await using hub = await HubProcess.prepare({ emulator, lan: 'port = 80' });
  await using daemon = supervise(hub, '/nowhere/notify');
  expect(await daemon.ended).toEqual({ status: 78, signal: null });
  expect(daemon.log()).toEqual([expect.stringMatching(/^<3>latchkey: .*lan\.port.*http_port/)]);
});

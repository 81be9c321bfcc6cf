import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { NotifySocket, systemdSkipReason } from '../../support/notify-socket.ts';
import { startPortal } from '../../support/portal.ts';
import { supervise } from '../../systemd/supervised.ts';

describe.skipIf(systemdSkipReason)('a daemon under systemd', () => {
  test('a daemon sends no watchdog keep-alives while its event loop is blocked, and logs that afterwards', async () => {
    await using socket = await NotifySocket.listen();
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    const blocking = '<6>{"event":"blocking"}\\n';
    const endFile = join(hub.directory, 'over');
    const wait = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)),0,0,100)';
    const hasEnded = `process.getBuiltinModule('node:fs').existsSync('${endFile}')`;
    await using daemon = supervise(hub, socket.path, {
      env: { WATCHDOG_USEC: '1500000' },
      onSignal: `process.stderr.write('${blocking}');while(!${hasEnded})${wait}`,
    });
    await socket.waitForAssignment('WATCHDOG=1');
    await socket.waitForAssignment('READY=1');
    daemon.child.kill('SIGUSR2');
    await eventually(async () => daemon.events().some(({ event }) => event === 'blocking'));
    // Work that was in progress when it stopped still completes.
    await sleep(1500);
    const before = socket.messages.length;
    await sleep(5000);
    // Otherwise there would be ten; one may have been in progress for long.
    expect(socket.messages.length).toBeLessThanOrEqual(before + 1);
    writeFileSync(endFile, '');
    await eventually(async () => socket.messages.length > before + 1);
    expect(daemon.events()).toContainEqual(
      expect.objectContaining({ priority: 4, event: 'event_loop_blocked', seconds: expect.any(Number) }),
    );
    daemon.child.kill('SIGTERM');
    await daemon.ended;
  });

  test('a daemon continues when it can not open any more files', async () => {
    await using socket = await NotifySocket.listen();
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = supervise(hub, socket.path, { within: ['/usr/bin/prlimit', '--nofile=50:50'] });
    await socket.waitForAssignment('READY=1');
    await hub.addAppliance('wallbox');
    await socket.waitForAssignment('STATUS=1 unpaired');
    const connections = Array.from({ length: 100 }, () => connect(hub.httpsPort, '127.0.0.1').on('error', () => {}));
    // Longer than the interval of the checks whether the status line has changed.
    await sleep(4000);
    for (const connection of connections) connection.destroy();
    // The hub needs a moment to notice that they are closed, and until then it closes new connections.
    await eventually(() =>
      hub.status().then(
        () => true,
        () => false,
      ),
    );
    await hub.addAppliance('fan');
    await socket.waitForAssignment('STATUS=2 unpaired');
    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
  });
});

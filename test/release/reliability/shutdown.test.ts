import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecure } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { countCodeSends, countRefreshSends, fetchPage, pairFleet, waitUntilStopping } from '../../reliability/fleet.ts';
import { eventually, HubProcess, stateParameterOf } from '../../support/hub-process.ts';
import { startPausablePortal } from '../../support/pausable-portal.ts';
import { startPortal } from '../../support/portal.ts';
import { superviseUntilReady } from '../../systemd/supervised.ts';

/** The lifetime of access tokens, in ms. */
const LIFETIME = 10_000;

describe.concurrent('hub that is told to stop', () => {
  it('silent connections do not prevent a hub from stopping, and its control socket is removed', async () => {
    await using emulator = await startPortal();
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await superviseUntilReady(hub);
    await using silent = new AsyncDisposableStack();
    const answers: string[] = [];
    for (const [port, secure] of [
      [hub.httpPort, false],
      [hub.httpsPort, true],
    ] as const) {
      const opened = secure
        ? connectSecure({ host: '127.0.0.1', port, rejectUnauthorized: false })
        : connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      const socket = silent.adopt(opened, (open) => void open.destroy());
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => answers.push(String(bytes)));
      await once(socket, secure ? 'secureConnect' : 'connect');
    }
    daemon.child.kill('SIGTERM');
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect(existsSync(join(hub.directory, 'state/control.sock'))).toBe(false);
    // Waiting requests also end at last, when their time limit is over, and get a response.
    expect(answers).toEqual([]);
  });

  it('a hub that gets SIGINT sends no refresh that comes due while it waits for a code exchange', async () => {
    await using portal = await startPausablePortal({ tokenLifetime: LIFETIME / 1000 });
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await using daemon = await superviseUntilReady(hub);
    await pairFleet(hub, emulator, ['wallbox']);
    await hub.addAppliance('heatpump', 'Monitoring');
    const { location } = await emulator.login({
      state: stateParameterOf(await hub.beginPairing('heatpump')),
      user: 'demo',
    });
    portal.hold();
    void fetchPage(location).catch(() => undefined);
    await eventually(async () => countCodeSends(emulator).length === 2);
    daemon.child.kill('SIGINT');
    await waitUntilStopping(hub);
    const sent = countRefreshSends(emulator).length;
    await sleep(LIFETIME);
    portal.release();
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect(countRefreshSends(emulator)).toHaveLength(sent);
    await hub.launch();
    // On a slow machine the token has expired by now, and a refresh is in progress.
    await hub.until('heatpump', ({ state }) => state === 'active');
  });
});

import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecure } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { eventually, HubProcess, stateParameterOf } from '../support/hub-process.ts';
import { startPausablePortal } from '../support/pausable-portal.ts';
import { startPortal } from '../support/portal.ts';
import { superviseUntilReady } from '../systemd/supervised.ts';
import { countCodeSends, countRefreshSends, fetchPage, pairFleet, startRefresh } from './fleet.ts';
import { storeFleet } from './stored-fleet.ts';

/** The hub's concurrent requests to a portal, and their maximum if they take long. */
const [SENT_AT_ONCE, MAX_SENT] = [32, 64];
/** The lifetime of access tokens, in ms. */
const LIFETIME = 10_000;

describe.concurrent('hub that is told to stop', () => {
  it('a hub that gets SIGTERM waits for requests in flight, saves their results, sends nothing new and exits with 0', async () => {
    await using portal = await startPausablePortal();
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    const names = Array.from({ length: MAX_SENT + 6 }, (_, index) => `appliance-${index}`);
    await storeFleet(hub, emulator, names, 0);
    await using daemon = await superviseUntilReady(hub);
    await hub.addAppliance('wallbox', 'Monitoring');
    const { location } = await emulator.login({
      state: stateParameterOf(await hub.beginPairing('wallbox')),
      user: 'demo',
    });
    const codesBefore = countCodeSends(emulator).length;
    portal.hold();
    void fetchPage(location).catch(() => undefined);
    await eventually(async () => countCodeSends(emulator).length === codesBefore + 1);
    for (const name of names) startRefresh(hub, name);
    // Some requests are queued, because their concurrency is limited.
    await portal.kept(SENT_AT_ONCE);
    daemon.child.kill('SIGTERM');
    await stopped(hub);
    const sent = countRefreshSends(emulator).length;
    expect(sent).toBeLessThan(names.length);
    expect(daemon.child.exitCode).toBeNull();
    portal.release();
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect(countRefreshSends(emulator)).toHaveLength(sent);

    await hub.launch();
    const { appliances } = await hub.ask((control) => control.status());
    expect(appliances).toHaveLength(names.length + 1);
    for (const status of appliances) expect(status).toMatchObject({ state: 'active', problem: null });
    expect(emulator.grants().filter(({ generation }) => generation === 2)).toHaveLength(sent);
    // The stored refresh tokens are valid at the portal, both those that were sent and those that were not.
    for (const name of [...names.slice(0, 3), ...names.slice(-3)]) {
      expect(await hub.ask((control) => control.refresh(name))).toMatchObject({ state: 'active', problem: null });
    }
    expect(countRefreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
    expect(countCodeSends(emulator).every((sends) => sends === 1)).toBe(true);
  });

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
    await stopped(hub);
    const sent = countRefreshSends(emulator).length;
    await sleep(LIFETIME);
    portal.release();
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect(countRefreshSends(emulator)).toHaveLength(sent);
    await hub.launch();
    // On a slow machine the token has expired by now, and a refresh is in progress.
    await hub.until('heatpump', ({ state }) => state === 'active');
  });

  it('a hub that gets a second signal exits at once, and its next run knows of the lost answer', async () => {
    await using portal = await startPausablePortal({ refreshGrace: 1 });
    const { emulator } = portal;
    await using hub = await HubProcess.prepare({ emulator });
    await storeFleet(hub, emulator, ['wallbox'], 0);
    await using daemon = await superviseUntilReady(hub);
    portal.hold();
    startRefresh(hub, 'wallbox');
    await eventually(async () => countRefreshSends(emulator).length === 1);
    // Two equal signals that arrive before the first is handled count as one, so the second one is different.
    daemon.child.kill('SIGTERM');
    daemon.child.kill('SIGINT');
    expect(await daemon.ended).toEqual({ status: 130, signal: null });

    await hub.launch();
    expect(readFileSync(hub.log, 'utf8')).toContain('"answer_lost"');
    portal.release();
    await hub.until('wallbox', ({ state }) => state === 'active');
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([2]);
  });
});

/** Resolves when the control socket is closed: the hub has handled the signal. */
async function stopped(hub: HubProcess): Promise<void> {
  await eventually(async () => (await hub.status().catch(() => null)) === null);
}

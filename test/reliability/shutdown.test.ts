import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { eventually, HubProcess, stateParameterOf } from '../support/hub-process.ts';
import { startPausablePortal } from '../support/pausable-portal.ts';
import { superviseUntilReady } from '../systemd/supervised.ts';
import { countCodeSends, countRefreshSends, fetchPage, startRefresh, waitUntilStopping } from './fleet.ts';
import { storeFleet } from './stored-fleet.ts';

/** The hub's concurrent requests to a portal, and their maximum if they take long. */
const [SENT_AT_ONCE, MAX_SENT] = [32, 64];

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
    await waitUntilStopping(hub);
    const sent = countRefreshSends(emulator).length;
    expect(sent).toBeLessThan(names.length);
    expect(daemon.child.exitCode).toBeNull();
    portal.release();
    expect(await daemon.ended).toEqual({ status: 0, signal: null });
    expect(countRefreshSends(emulator)).toHaveLength(sent);

    await hub.launch();
    const { appliances } = await hub.ask((control) => control.request('status'));
    expect(appliances).toHaveLength(names.length + 1);
    for (const status of appliances) expect(status).toMatchObject({ state: 'active', problem: null });
    expect(emulator.grants().filter(({ generation }) => generation === 2)).toHaveLength(sent);
    // The stored refresh tokens are valid at the portal, both those that were sent and those that were not.
    for (const name of [...names.slice(0, 3), ...names.slice(-3)]) {
      expect(await hub.ask((control) => control.request('refresh', { name }))).toMatchObject({
        state: 'active',
        problem: null,
      });
    }
    expect(countRefreshSends(emulator).every(({ sends }) => sends === 1)).toBe(true);
    expect(countCodeSends(emulator).every((sends) => sends === 1)).toBe(true);
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

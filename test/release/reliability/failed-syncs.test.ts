import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readStoredGrant } from '../../chaos/stored-grant.ts';
import { canTraceSystemCalls, failSyncs, ONE_POOL_THREAD } from '../../chaos/system-calls.ts';
import { countRefreshSends, pairFleet } from '../../reliability/fleet.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { startPortal } from '../../support/portal.ts';

async function start() {
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startPortal());
  const hub = parts.use(await HubProcess.start({ emulator, env: ONE_POOL_THREAD }));
  await pairFleet(hub, emulator, ['wallbox']);
  const running = parts.move();
  return { emulator, hub, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

const generationOnDisk = async ({ directory }: HubProcess) =>
  (await readStoredGrant(join(directory, 'state'), 'wallbox'))?.generation;
const refresh = (hub: HubProcess) => hub.ask((control) => control.request('refresh', { name: 'wallbox' }));

describe.skipIf(!canTraceSystemCalls())('syncs that fail', () => {
  it('a refresh whose attempt can not be synced is not sent, and is made when the disk works again', async () => {
    await using home = await start();
    const { hub, emulator } = home;
    {
      await using _failing = await failSyncs(hub.pid);
      expect(await refresh(hub)).toMatchObject({ problem: { code: 'store_unwritable' } });
      expect(countRefreshSends(emulator)).toEqual([]);
    }
    expect(await refresh(hub)).toMatchObject({ state: 'active' });
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([1]);
  });

  it('new tokens that can not be synced are used, and are on disk when it works again', async () => {
    await using home = await start();
    const { hub, emulator } = home;
    expect(await generationOnDisk(hub)).toBe(1);
    {
      // The first sync is that of the attempt.
      await using _failing = await failSyncs(hub.pid, 2);
      await refresh(hub);
      expect((await hub.status()).hub.problems).toMatchObject([{ code: 'store_unwritable' }]);
    }
    await eventually(async () => (await hub.status()).hub.problems === undefined, 60);
    const { access_token: before } = await hub.ask((control) => control.request('token', { name: 'wallbox' }));
    await hub.kill('SIGKILL');
    await hub.launch();
    expect((await hub.ask((control) => control.request('token', { name: 'wallbox' }))).access_token).toBe(before);
    expect(await generationOnDisk(hub)).toBe(2);
    expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual([1]);
  });

  it('an appliance that can not be saved can be added again under the same name', async () => {
    await using home = await start();
    const { hub } = home;
    {
      await using _failing = await failSyncs(hub.pid);
      await expect(hub.addAppliance('heater')).rejects.toMatchObject({ code: 'store_unwritable' });
    }
    await hub.addAppliance('heater');
    await hub.kill('SIGKILL');
    await hub.launch();
    expect((await hub.status()).appliances.map(({ name }) => name)).toEqual(['heater', 'wallbox']);
  });
});

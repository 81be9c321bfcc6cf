import { expect, it } from 'vitest';
import { countRefreshSends, refreshUntilActive } from './fleet.ts';
import { startSmallHome } from './small-home.ts';

const NAMES = ['cellar', 'roof'];

it('a disk that fills up during refreshes costs no grant, and a hub without room for new tokens sends no refresh', async (ctx) => {
  await using home = await startSmallHome(ctx, 'tmpfs', NAMES);
  const { hub, emulator, disk } = home;
  // A WAL that is reused from its beginning has room for writes even on a full disk; after a fresh start it has none.
  await hub.kill('SIGTERM');
  await hub.launch();
  await home.refreshAnd(NAMES, () => disk.fill());
  const allRefreshed = () => emulator.grants().every(({ generation }) => generation === 2);
  for (const name of NAMES) await hub.until(name, ({ problem }) => problem === null && allRefreshed());
  await hub.kill('SIGKILL');
  await hub.launch();
  for (const name of NAMES) expect(await hub.appliance(name)).toMatchObject({ state: 'active', problem: null });
  // The reserved space for refreshed tokens is used up.
  const refused = await hub.ask((control) => control.request('refresh', { name: 'cellar' }));
  expect(refused).toMatchObject({ state: 'retrying', problem: { code: 'store_unwritable' } });
  expect(countRefreshSends(emulator)).toHaveLength(NAMES.length);
  disk.makeRoom();
  for (const name of NAMES) await refreshUntilActive(hub, name);
  expect(countRefreshSends(emulator).map(({ sends }) => sends)).toEqual(Array(2 * NAMES.length).fill(1));
});

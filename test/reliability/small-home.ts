import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { startPausablePortal } from '../support/pausable-portal.ts';
import { pairFleet, startRefresh } from './fleet.ts';
import { TokenLoad } from './load.ts';
import { SmallDisk } from './small-disk.ts';

/** A hub with these paired appliances, its state on a small disk. Skips the test if nothing can be mounted. */
export async function startSmallHome(ctx: TestContext, kind: 'tmpfs' | 'ext4', names: readonly string[]) {
  await using parts = new AsyncDisposableStack();
  const portal = parts.use(await startPausablePortal({ refreshGrace: kind === 'ext4' ? 1 : 0 }));
  const { emulator } = portal;
  const hub = parts.use(await HubProcess.prepare({ emulator }));
  const disk = parts.use(SmallDisk.mount(hub, kind) ?? ctx.skip('needs root and the permission to mount'));
  await hub.launch();
  const fleet = await pairFleet(hub, emulator, names);
  // A snapshot in progress when the disk becomes full would leave free space behind.
  const store = join(hub.directory, 'state/latchkey.db.copy');
  await eventually(async () => existsSync(store) && !existsSync(`${store}.new`));
  const running = parts.move();
  return {
    hub,
    emulator,
    disk,
    /** Makes the appliances request tokens from now on. */
    startLoad: () => TokenLoad.start(hub, emulator, fleet, 500),
    /** Refreshes these appliances, and calls `act` when the portal has acted and is about to respond. */
    async refreshAnd(appliances: readonly string[], act: () => void) {
      portal.hold();
      for (const name of appliances) startRefresh(hub, name);
      await portal.kept(appliances.length);
      act();
      portal.release();
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

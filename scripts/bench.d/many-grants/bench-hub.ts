import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../../../src/system/clock.ts';
import type { storeMadeUpFleet } from '../../../test/reliability/stored-fleet.ts';
import { eventually, type HubProcess, type HubProcessOptions } from '../../../test/support/hub-process.ts';
import { SlowSyncs } from '../../../test/support/slow-syncs.ts';
import { type LoadResult, runLoad, tokenRequest } from '../load.ts';
import { startPermissivePortal } from '../permissive-portal.ts';

/** Connections of the load. */
const CHAINS = 16;
/** The lifetime of access tokens, in ms: so long that no grant is due twice. */
const LIFETIME = 12 * 3_600_000;

const clock = systemClock();

/** Milliseconds since the boot, on the hub's clock. */
export function bootTime(): number {
  return clock.now().uptime;
}

/** A load on a hub with many grants. */
interface ManyGrantsLoad {
  /** When to begin, on the boot clock in ms. */
  readonly from: number;
  /** How much longer each sync takes, in ms. */
  readonly sync: number;
  /** Token requests per second. */
  readonly rate: number;
  /** In s, as for `runLoad`. */
  readonly warmUp: number;
  readonly seconds: number;
}

/** A hub with many grants, and its portal. */
export interface ManyGrantsBench extends AsyncDisposable {
  /** Sends token requests at regular intervals. @returns also how many grants were refreshed meanwhile */
  load(load: ManyGrantsLoad): Promise<LoadResult & { readonly refreshes: number }>;
}

/**
 * Starts a hub with many grants, and a portal for it.
 * @param fill writes the grants, with the code of the measured revision
 * @param dueAt when each grant is due, on the boot clock in ms; if it is before the start, the hub chooses another time
 * @param folder for the file that sets the duration of syncs
 */
export async function startManyGrantsBench(
  prepare: (options: HubProcessOptions) => Promise<HubProcess>,
  fill: typeof storeMadeUpFleet,
  dueAt: readonly number[],
  folder: string,
): Promise<ManyGrantsBench> {
  await using parts = new AsyncDisposableStack();
  const syncs = new SlowSyncs(folder);
  const portal = parts.use(await startPermissivePortal(LIFETIME));
  const hub = parts.use(await prepare({ emulator: portal, env: syncs.env }));
  const fleet = await fill(hub, portal, LIFETIME, dueAt);
  await hub.launch();
  await eventually(async () => hub.events('snapshot_written').length > 0);
  const chains = fleet.slice(-CHAINS).map((member) => {
    return { request: tokenRequest(hub.httpsPort, member), expected: '"access_token"' };
  });
  const running = parts.move();
  return {
    async load({ from, sync, rate, warmUp, seconds }) {
      await sleep(Math.max(0, from - bootTime()));
      const before = portal.refreshes;
      syncs.setDuration(sync);
      const load = await runLoad('latchkey', { port: hub.httpsPort, chains, rate, warmUp, seconds });
      syncs.setDuration(0);
      return { ...load, refreshes: portal.refreshes - before };
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

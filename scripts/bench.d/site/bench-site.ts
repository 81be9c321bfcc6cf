import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FleetMember } from '../../../test/reliability/stored-fleet.ts';
import { prepareSiteHub } from '../../../test/site/site-hubs.ts';
import { eventually, type HubProcess } from '../../../test/support/hub-process.ts';
import { likeService, prepareHub, storedFleetCode } from '../hub.ts';
import type { PermissivePortal } from '../permissive-portal.ts';
import { cpuTime } from '../program.ts';
import type { BenchSubject } from '../suite.ts';
import type { SiteDatabase } from './site-database.ts';

/** Hubs that share their connections, or one hub on SQLite. */
export interface HubGroup extends AsyncDisposable {
  readonly hubs: readonly HubProcess[];
  /** How long each hub took to start, in ms. */
  readonly startUps: readonly number[];
  /** The client ids are the ids of the connections. */
  readonly fleet: readonly FleetMember[];
  /** Null for a hub on SQLite. */
  readonly database: SiteDatabase | null;
}

/** What a group of hubs works with. */
export interface GroupOptions {
  readonly subject: BenchSubject;
  readonly portal: PermissivePortal;
  /** The lifetime of the tokens, in ms. */
  readonly lifetime: number;
  /** When each grant is due, on the boot clock in ms. */
  readonly dueAt: readonly number[];
}

/** Starts a hub on SQLite. */
export async function startSingleHub({ subject, portal, lifetime, dueAt }: GroupOptions): Promise<HubGroup> {
  await using parts = new AsyncDisposableStack();
  const hub = parts.use(await prepareHub(subject, { emulator: portal }));
  const { storeMadeUpFleet } = await storedFleetCode(subject);
  const fleet = await storeMadeUpFleet(hub, portal, lifetime, dueAt);
  const startUp = await launch(hub);
  await eventually(async () => hub.events('snapshot_written').length > 0, 60);
  const running = parts.move();
  return {
    hubs: [hub],
    startUps: [startUp],
    fleet,
    database: null,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Starts the hubs of a site, one after another. */
export async function startSite(database: SiteDatabase, count: number, options: GroupOptions): Promise<HubGroup> {
  const { subject, portal, lifetime, dueAt } = options;
  await using parts = new AsyncDisposableStack();
  const fleet = await database.fill(portal, lifetime, dueAt);
  const hubs: HubProcess[] = [];
  for (let number = 1; number <= count; number += 1) {
    const prepared = prepareSiteHub(database.database, `hub ${number}`, likeService(subject, { emulator: portal }));
    hubs.push(parts.use(await prepared));
  }
  const startUps: number[] = [];
  for (const hub of hubs) {
    await copyFile(join(database.directory, 'store.key'), join(hub.directory, 'state/store.key'));
    startUps.push(await launch(hub));
  }
  const running = parts.move();
  return { hubs, startUps, fleet, database, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** CPU time of all hubs since their start, in ms. */
export function hubsCpu({ hubs }: Pick<HubGroup, 'hubs'>): number {
  return hubs.reduce((sum, { pid }) => sum + cpuTime(pid), 0);
}

async function launch(hub: HubProcess): Promise<number> {
  const before = performance.now();
  await hub.launch();
  return performance.now() - before;
}

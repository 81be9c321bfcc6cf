import type { Broker } from '../broker/open-broker.ts';
import type { BrokerStore, Environment } from '../broker/ports.ts';
import type { EmitEvent } from '../core/reports/history.ts';
import type { OwnSiteEntry } from '../core/site.ts';
import type { Counters } from '../metrics/counters.ts';
import { DiskSpaceMonitor } from './disk-space-monitor.ts';
import type { LocalStore } from './open-state.ts';
import { SiteUpkeep } from './site/site-upkeep.ts';
import { SlowStoreMonitor } from './slow-store-monitor.ts';
import { StoreMaintenance } from './store-maintenance.ts';

interface StoreUpkeepContext {
  readonly environment: Environment;
  readonly store: Pick<BrokerStore, 'site' | 'writeProblem' | 'watch' | 'holdLease'>;
  readonly local: LocalStore | null;
  readonly counters: Counters;
  readonly broker: Pick<Broker, 'grants' | 'usageRecorder'>;
  /** Calls a listener after every event of an appliance. */
  onEvent(listener: EmitEvent): void;
  /** Requests that the hub starts again, because the store has another state than its memory. */
  restart(): void;
  /** What this hub says about itself to the others of its site. */
  ownSiteEntry(): OwnSiteEntry;
}

/** What keeps the store of a hub in order while the hub runs. */
export interface StoreUpkeep {
  /** Call it when the hub has opened its ports. */
  start(): void;
  /** Call it after the wall clock was set. */
  onClockSet(): void;
  onAddressChanged(): void;
  /** Writes a snapshot soon, if the store has any. */
  requestSnapshot(): void;
  /** The local store, and how to write a snapshot of it; null on a site. */
  readonly local: (LocalStore & { takeSnapshot(): Promise<void> }) | null;
}

/** Opens the upkeep of the store. @param parts owns it */
export function openStoreUpkeep(context: StoreUpkeepContext, parts: AsyncDisposableStack): StoreUpkeep {
  const { store, local } = context;
  if (local !== null) return openLocalUpkeep(local, context, parts);
  const upkeep =
    store.site &&
    parts.use(new SiteUpkeep({ ...context, ...context.broker, site: store.site, ownEntry: context.ownSiteEntry }));
  return {
    start: () => upkeep?.start(),
    onClockSet: () => undefined,
    onAddressChanged: () => upkeep?.announce(),
    requestSnapshot: () => undefined,
    local: null,
  };
}

function openLocalUpkeep(
  local: LocalStore,
  { environment, counters, broker, onEvent, restart }: StoreUpkeepContext,
  parts: AsyncDisposableStack,
): StoreUpkeep {
  const { store } = local;
  store.commitTimes.onEnded((ms) => counters.commitDurations.observe(ms));
  parts.use(new SlowStoreMonitor(store.commitTimes, environment));
  const diskSpaceMonitor = parts.use(new DiskSpaceMonitor(store.files.directory, environment.timers, broker.grants));
  onEvent(() => diskSpaceMonitor.startIfNeeded());
  const maintenance = parts.use(new StoreMaintenance(store, environment, restart));
  return {
    start: () => maintenance.start(),
    onClockSet: () => maintenance.onClockSet(),
    onAddressChanged: () => undefined,
    requestSnapshot: () => maintenance.requestSnapshot(),
    local: { ...local, takeSnapshot: () => maintenance.takeSnapshot() },
  };
}

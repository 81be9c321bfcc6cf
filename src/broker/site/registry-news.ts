import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { SiteNews } from '../../core/site.ts';
import type { Appliances } from '../appliances/appliances.ts';
import type { Connections } from '../connections/connections.ts';
import type { BrokerStore } from '../ports.ts';

/** How often the records are read again if they do not fit together. */
const MAX_READS = 3;

/** Ids of what another hub has removed. */
export interface RemovedRecords {
  readonly connections: readonly string[];
  readonly appliances: readonly string[];
}

/** What {@link applyRegistryNews} works with. */
interface RegistryNewsContext {
  readonly store: Pick<BrokerStore, 'connections' | 'appliances'>;
  readonly connections: Connections;
  readonly appliances: Appliances;
}

/** What was read of the store; `ids` is null for all. */
interface ReadRecords {
  readonly connections: { readonly stored: readonly Connection[]; readonly ids: ReadonlySet<string> | null };
  readonly appliances: { readonly stored: readonly Appliance[]; readonly ids: ReadonlySet<string> | null };
}

/**
 * Takes over the connections and appliances that other hubs have changed, all of them at one moment.
 * @returns what they have removed
 * @throws Failure as the store
 */
export function applyRegistryNews(
  { connections: connectionIds, appliances: applianceIds, all }: SiteNews,
  context: RegistryNewsContext,
): Promise<RemovedRecords> {
  const { connections, appliances } = context;
  return connections.shared.exclusively(async () => {
    const read = await readRecords(all ? null : { connectionIds, applianceIds }, context);
    return {
      connections: connections.replace(read.connections.stored, read.connections.ids),
      appliances: appliances.replace(read.appliances.stored, read.appliances.ids),
    };
  });
}

/** The two kinds are read one after the other, so a change in between may leave an appliance without its connection. */
async function readRecords(
  wanted: { readonly connectionIds: ReadonlySet<string>; readonly applianceIds: ReadonlySet<string> } | null,
  { store }: RegistryNewsContext,
): Promise<ReadRecords> {
  for (let reads = 1; ; reads++) {
    const foundAppliances = await store.appliances(wanted?.applianceIds);
    // Also those that an appliance uses now: they may be newer than the news.
    const connectionIds = wanted && new Set([...wanted.connectionIds, ...foundAppliances.map((one) => one.connection)]);
    const foundConnections = await store.connections(connectionIds ?? undefined);
    const found = new Set(foundConnections.map(({ id }) => id));
    if (reads < MAX_READS && !foundAppliances.every(({ connection }) => found.has(connection))) continue;
    return {
      connections: { stored: foundConnections, ids: connectionIds },
      appliances: { stored: foundAppliances, ids: wanted?.applianceIds ?? null },
    };
  }
}

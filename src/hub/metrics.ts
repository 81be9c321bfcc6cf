import type { Appliances } from '../broker/appliances/appliances.ts';
import type { Connections } from '../broker/connections/connections.ts';
import type { Environment } from '../broker/ports.ts';
import type { ReferenceClock } from '../broker/time/reference-clock.ts';
import type { SocketAddress } from '../configuration/values.ts';
import type { Administration } from '../core/administration.ts';
import { confirmedTimeAt, type Instant } from '../core/clock.ts';
import type { Counters } from '../metrics/counters.ts';
import { MetricsListener } from '../metrics/listener.ts';

/** What {@link openMetrics} needs. */
export interface MetricsContext {
  readonly environment: Environment;
  /** Null if metrics are not served. */
  readonly listen: SocketAddress | null;
  readonly administration: Administration;
  readonly connections: Connections;
  /** When each portal last responded in normal service, by its name. */
  readonly portalsReached: ReadonlyMap<string, Instant>;
  readonly appliances: Appliances;
  readonly portalClock: ReferenceClock;
  readonly counters: Counters;
  overdueMs(): number;
  names(): readonly string[];
}

/** Opens the listener for metrics and health; null if none is configured. */
export async function openMetrics(context: MetricsContext): Promise<MetricsListener | null> {
  const { listen, environment, administration, connections, appliances, portalClock, counters } = context;
  const { clock, timers, log } = environment;
  if (listen === null) return null;
  return MetricsListener.open({
    ...listen,
    status: () => administration.status(),
    connectionIds: () => new Map(connections.list().map(({ id, name }) => [name, id])),
    applianceIds: () => new Map(appliances.list().map(({ id, name }) => [name, id])),
    portalsReached: () => context.portalsReached,
    clockOffset() {
      const now = clock.now();
      const time = confirmedTimeAt(portalClock.confirmed, now);
      return time === null ? null : now.wall - time;
    },
    counters,
    overdue: () => context.overdueMs(),
    hostNames: () => context.names(),
    log,
    timers,
  });
}

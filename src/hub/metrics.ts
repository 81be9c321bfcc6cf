import type { Broker } from '../broker/open-broker.ts';
import type { SocketAddress } from '../configuration/values.ts';
import type { Administration } from '../core/administration.ts';
import { confirmedTimeAt } from '../core/clock.ts';
import { OptionalServer, type OptionalServerOptions } from '../lan/optional-server.ts';
import type { Counters } from '../metrics/counters.ts';
import { createEndpointHandler, type EndpointsContext } from '../metrics/endpoints.ts';
import { isOwnHost } from '../system/http/host-check.ts';

/** Where to listen, and what the endpoints need. */
export interface MetricsServerOptions
  extends SocketAddress,
    EndpointsContext,
    Pick<OptionalServerOptions, 'sockets' | 'timers'> {
  /** The DNS names under which the hub can be requested, in lower case, including those of loopback. */
  hostNames(): readonly string[];
}

const FOREIGN_HOST_TEXT = 'The Host header is not a name or an address of this Latchkey hub.\n';

/** Serves metrics and health over plain HTTP. */
export function openMetricsServer(options: MetricsServerOptions): Promise<OptionalServer> {
  const { host, port, sockets, timers, hostNames, log } = options;
  return OptionalServer.open({
    name: 'metrics',
    hosts: [host],
    port,
    sockets,
    timers,
    rejection: ({ headers }) =>
      isOwnHost(headers.host, hostNames()) ? null : { status: 421, text: FOREIGN_HOST_TEXT },
    serve: createEndpointHandler(options),
    onListening: (opened) => log.info('metrics_listening', { host, port: opened }),
    onUnavailable: (unavailable) => log.warn('metrics_unavailable', { host, ...unavailable }),
  });
}

/** What the metrics of a hub are read from. */
export function metricsContext(
  { environment, connections, appliances, portalsReached, referenceClock, scheduler }: Broker,
  administration: Administration,
  counters: Counters,
): EndpointsContext {
  return {
    status: () => administration.status(),
    connectionIds: () => new Map(connections.list().map(({ id, name }) => [name, id])),
    applianceIds: () => new Map(appliances.list().map(({ id, name }) => [name, id])),
    portalsReached: () => portalsReached,
    clockOffset() {
      const now = environment.clock.now();
      const time = confirmedTimeAt(referenceClock.confirmed, now);
      return time === null ? null : now.wall - time;
    },
    counters,
    overdue: () => scheduler.overdue,
    log: environment.log,
  };
}

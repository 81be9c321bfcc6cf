import type { Configuration } from '../configuration/configuration.ts';
import type { Timers } from '../core/clock.ts';
import { ListeningSocketPool } from '../lan/listening-socket-pool.ts';
import { readLan, watchLan } from '../mdns/networks/lan-watch.ts';
import type { HubPorts } from './hub-endpoints.ts';

/** How often the network's addresses are checked, in ms. */
const LAN_CHECK_INTERVAL = 4000;

/**
 * Watches the home network, and opens the sockets that the hub listens on there.
 * @param sockets sockets that outlive the hub, if there are any
 * @param parts owns what this function opens
 * @throws Failure `port_unavailable`
 */
export async function openNetwork(
  { address, listen, httpPort, httpsPort }: Configuration['lan'],
  timers: Timers,
  sockets: ListeningSocketPool | undefined,
  parts: AsyncDisposableStack,
) {
  const lan = parts.use(watchLan({ read: () => readLan(address, listen), timers, interval: LAN_CHECK_INTERVAL }));
  const listening = sockets ?? parts.use(new ListeningSocketPool());
  const opened = await listening.claim({ addresses: listen, ports: { http: httpPort, https: httpsPort } });
  parts.defer(() => listening.release([...opened.http.sockets, ...opened.https.sockets]));
  const ports: HubPorts = { http: opened.http.port, https: opened.https.port, local: null, metrics: null };
  return { lan, listening, opened, ports };
}

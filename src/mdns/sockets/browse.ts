import Bonjour, { type Service } from 'bonjour-service';
import type { Timers } from '../../core/clock.ts';
import { MulticastSocket } from './multicast-socket.ts';

/** A hub that was found on the network. */
export interface DiscoveredHub {
  readonly instance: string;
  /** From its TXT record; null if the record has no id. */
  readonly id: string | null;
  /** The id of its site, from its TXT record; null if the record has none. */
  readonly site: string | null;
  readonly addresses: readonly string[];
  readonly port: number;
}

/**
 * In ms. Two queries are sent, because a responder may suppress a response for a second after the last one (RFC 6762
 * section 6).
 */
const QUERY_INTERVAL = 1200;

/**
 * Finds the hubs on a network over IPv4. It takes 2.4 s.
 * @param address this machine's address on the interface to use
 * @throws Error of the socket, for example if port 5353 can't be opened or the network is down
 */
export async function browse(address: string, timers: Timers): Promise<DiscoveredHub[]> {
  const { promise: broken, reject } = Promise.withResolvers<never>();
  const socket = new MulticastSocket({ interface: '', ipv4: address }, { acceptsSource: () => true, onError: reject });
  const bonjour = new Bonjour(socket.options);
  try {
    await socket.bound;
    const seen = new Map<string, Service>();
    const browser = bonjour.find({ type: 'latchkey' }, (service: Service) => seen.set(service.name, service));
    for (let sent = 0; sent < 2; sent++) {
      await Promise.race([timers.sleep(QUERY_INTERVAL), broken]);
      if (sent === 0) browser.update();
    }
    return [...seen.values()].map(toDiscoveredHub);
  } finally {
    broken.catch(() => undefined);
    await new Promise<void>((resolve) => bonjour.destroy(() => resolve()));
  }
}

function toDiscoveredHub({ name, txt, addresses = [], port }: Service): DiscoveredHub {
  const textOrNull = (value: unknown) => (typeof value === 'string' ? value : null);
  return { instance: name, id: textOrNull(txt?.id), site: textOrNull(txt?.site), addresses, port };
}

import Bonjour, { type Service } from 'bonjour-service';
import type { Timers } from '../../core/clock.ts';
import { MulticastSocket } from './multicast-socket.ts';

/** A hub that was seen on the network. */
export interface DiscoveredHub {
  readonly instance: string;
  /** From its TXT record; null where there is none. */
  readonly id: string | null;
  readonly addresses: readonly string[];
  readonly port: number;
}

/** Two questions, since an answer may be held back for a second after the last one (RFC 6762 section 6). */
const QUERY_INTERVAL = 1200;

/**
 * Asks a network over IPv4 which hubs there are. It takes 2.4 s.
 * @param address this machine's on the interface that is asked on
 * @throws Error as the socket gives it: port 5353 can't be had, the network is away
 */
export async function browse(address: string, timers: Timers): Promise<DiscoveredHub[]> {
  const { promise: broken, reject } = Promise.withResolvers<never>();
  const socket = new MulticastSocket({ interface: '', ipv4: address }, { acceptsSource: () => true, onError: reject });
  const bonjour = new Bonjour(socket.options);
  try {
    await socket.bound;
    const seen = new Map<string, Service>();
    const browser = bonjour.find({ type: 'latchkey' }, (service: Service) => seen.set(service.name, service));
    for (let asked = 0; asked < 2; asked++) {
      await Promise.race([timers.sleep(QUERY_INTERVAL), broken]);
      if (asked === 0) browser.update();
    }
    return [...seen.values()].map(toDiscoveredHub);
  } finally {
    broken.catch(() => undefined);
    await new Promise<void>((resolve) => bonjour.destroy(() => resolve()));
  }
}

function toDiscoveredHub({ name, txt, addresses = [], port }: Service): DiscoveredHub {
  const id: unknown = txt?.id;
  return { instance: name, id: typeof id === 'string' ? id : null, addresses, port };
}

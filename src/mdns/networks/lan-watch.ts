import { networkInterfaces } from 'node:os';
import type { Timers } from '../../core/clock.ts';
import { interfaceEpoch, readDefaultRoutes, readIpv6Flags, stableInterfaces } from './kernel.ts';
import { chooseLanAddress, type LanAddress, lanAddresses } from './lan-address.ts';
import { type AttachedAddress, attachedAddresses, findSegments, type Segment } from './segments.ts';

/** The hub's place in the home network, at one moment. */
export interface Lan {
  /** Where the hub is reached; null while the network is away. */
  readonly address: LanAddress | null;
  /** Every address that its certificate has to name, loopback left out. */
  readonly addresses: readonly string[];
  /** Where neighbours shall find it: see `findSegments`. */
  readonly segments: readonly Segment[];
  /** This machine's addresses, of any interface. */
  readonly attached: readonly AttachedAddress[];
}

/** The network as it was read last. */
export interface LanWatch extends Disposable {
  readonly current: Lan;
  /** Looks at it now, and from then on now and then: see {@link LanListeners}. */
  begin(listeners: LanListeners): void;
}

/** What is called after changes. */
interface LanListeners {
  /** Called after a change of the hub's own addresses, never for the first reading. */
  onChange(now: Lan, before: Lan): void;
  /** Called after any other change: an interface lost its network for a moment, or leads into another one. */
  onTopologyChange?(now: Lan): void;
}

export interface LanWatchOptions {
  /** Reads the network; {@link readLan} with the setting filled in. */
  read(): Lan;
  readonly timers: Timers;
  /** Milliseconds between two looks. The kernel tells of changes only over netlink, which node doesn't speak. */
  readonly every: number;
}

/**
 * Reads the machine's interfaces and routes.
 * @param setting `lan.address`: `auto`, an IP address, or an interface's name
 * @param listen `lan.listen`
 * @throws Error where the operating system refuses to list its interfaces (a sandbox without AF_NETLINK)
 */
export function readLan(setting: string, listen: readonly string[] = ['0.0.0.0', '::']): Lan {
  const all = networkInterfaces();
  const interfaces = stableInterfaces(all, readIpv6Flags(), setting);
  const options = { setting, defaultRoutes: readDefaultRoutes() };
  return {
    address: chooseLanAddress(interfaces, options),
    addresses: lanAddresses(interfaces, options),
    segments: findSegments(interfaces, { ...options, listen, epoch: interfaceEpoch }),
    attached: attachedAddresses(all),
  };
}

/**
 * Looks at the network once, and from {@link LanWatch.begin} on now and then, until it is disposed of: addresses come late at
 * boot, and change with a DHCP lease. A look that fails counts as no change, but for the first.
 * @throws what the first `read` throws
 */
export function watchLan({ read, timers, every }: LanWatchOptions): LanWatch {
  let current = read();
  let cancel = () => {};

  function look(listeners: LanListeners) {
    cancel = timers.after(every, () => look(listeners));
    const before = current;
    try {
      current = read();
    } catch {
      return;
    }
    if (ownAddresses(current) !== ownAddresses(before)) listeners.onChange(current, before);
    else if (JSON.stringify(current) !== JSON.stringify(before)) listeners.onTopologyChange?.(current);
  }

  return {
    get current() {
      return current;
    },
    begin: look,
    [Symbol.dispose]() {
      cancel();
    },
  };
}

function ownAddresses({ address, addresses }: Lan): string {
  return JSON.stringify([address, addresses]);
}

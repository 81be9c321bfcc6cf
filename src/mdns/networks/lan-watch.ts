import { networkInterfaces } from 'node:os';
import type { Timers } from '../../core/clock.ts';
import { excludeUnstableAddresses, interfaceEpoch, readDefaultRoutes, readIpv6Flags } from './kernel.ts';
import { chooseLanAddress, type LanAddress, lanAddresses } from './lan-address.ts';
import { findSegments, type InterfaceCidr, interfaceCidrs, type Segment } from './segments.ts';

/** The hub's place in the home network, at one moment. */
export interface LanState {
  /** Where the hub is reached; null while the network is away. */
  readonly address: LanAddress | null;
  /** Every address that its certificate has to name, loopback left out. */
  readonly addresses: readonly string[];
  /** Where neighbours shall find it: see `findSegments`. */
  readonly segments: readonly Segment[];
  /** This machine's addresses, of any interface. */
  readonly interfaceCidrs: readonly InterfaceCidr[];
}

/** The network as it was read last. */
export interface LanWatch extends Disposable {
  readonly current: LanState;
  /** Looks at it now, and from then on now and then: see {@link LanListeners}. */
  start(listeners: LanListeners): void;
}

/** What is called after changes. */
interface LanListeners {
  /** Called after a change of the hub's own addresses, never for the first reading. */
  onChange(now: LanState, before: LanState): void;
  /** Called after any other change: an interface lost its network for a moment, or leads into another one. */
  onTopologyChange?(now: LanState): void;
}

export interface LanWatchOptions {
  /** Reads the network; {@link readLan} with the setting filled in. */
  read(): LanState;
  readonly timers: Timers;
  /** Milliseconds between two looks. The kernel tells of changes only over netlink, which node doesn't speak. */
  readonly interval: number;
}

/**
 * Reads the machine's interfaces and routes.
 * @param setting `lan.address`: `auto`, an IP address, or an interface's name
 * @param listen `lan.listen`
 * @throws Error where the operating system refuses to list its interfaces (a sandbox without AF_NETLINK)
 */
export function readLan(setting: string, listen: readonly string[] = ['0.0.0.0', '::']): LanState {
  const all = networkInterfaces();
  const interfaces = excludeUnstableAddresses(all, readIpv6Flags(), setting);
  const options = { setting, defaultRoutes: readDefaultRoutes() };
  return {
    address: chooseLanAddress(interfaces, options),
    addresses: lanAddresses(interfaces, options),
    segments: findSegments(interfaces, { ...options, listen, epoch: interfaceEpoch }),
    interfaceCidrs: interfaceCidrs(all),
  };
}

/**
 * Looks at the network once, and from {@link LanWatch.start} on now and then, until it is disposed of: addresses come late at
 * boot, and change with a DHCP lease. A look that fails counts as no change, but for the first.
 * @throws what the first `read` throws
 */
export function watchLan({ read, timers, interval: every }: LanWatchOptions): LanWatch {
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
    start: look,
    [Symbol.dispose]() {
      cancel();
    },
  };
}

function ownAddresses({ address, addresses }: LanState): string {
  return JSON.stringify([address, addresses]);
}

import { networkInterfaces } from 'node:os';
import type { Timers } from '../../core/clock.ts';
import { excludeUnstableAddresses, interfaceChangeMarker, readDefaultRoutes, readIpv6Flags } from './kernel.ts';
import { chooseLanAddress, type LanAddress, lanAddresses } from './lan-address.ts';
import { findSegments, type InterfaceCidr, interfaceCidrs, type Segment } from './segments.ts';

/** The hub's addresses and networks at one moment. */
export interface LanState {
  /** The hub's main address; null while the network is down. */
  readonly address: LanAddress | null;
  /** All addresses that the server certificate must contain, without loopback. */
  readonly addresses: readonly string[];
  /** The segments on which the hub is announced: see `findSegments`. */
  readonly segments: readonly Segment[];
  /** This machine's addresses on all interfaces. */
  readonly interfaceCidrs: readonly InterfaceCidr[];
}

/** Watches the machine's interfaces. */
export interface LanWatch extends Disposable {
  /** The last reading. */
  readonly current: LanState;
  /** Reads the network now and then once per interval, and calls these listeners. */
  start(listeners: LanListeners): void;
}

/** The functions that are called after changes. */
interface LanListeners {
  /** Called after a change of the hub's addresses, never for the first reading. */
  onChange(now: LanState, before: LanState): void;
  /** Called after any other change: an interface lost its network for a moment, or is on another network now. */
  onTopologyChange?(now: LanState): void;
}

interface LanWatchOptions {
  /** Reads the network: {@link readLan} with the configured setting. */
  read(): LanState;
  readonly timers: Timers;
  /** Milliseconds between two readings. The kernel reports changes only over netlink, which Node does not support. */
  readonly interval: number;
}

/**
 * Reads the machine's interfaces and routes.
 * @param setting `lan.address`: `auto`, an IP address, or an interface's name
 * @param listen `lan.listen`
 * @throws Error if the operating system refuses to list its interfaces (a sandbox without AF_NETLINK)
 */
export function readLan(setting: string, listen: readonly string[] = ['0.0.0.0', '::']): LanState {
  const all = networkInterfaces();
  const interfaces = excludeUnstableAddresses(all, readIpv6Flags(), setting);
  const options = { setting, listen, defaultRoutes: readDefaultRoutes() };
  return {
    address: chooseLanAddress(interfaces, options),
    addresses: lanAddresses(interfaces, options),
    segments: findSegments(interfaces, { ...options, epoch: interfaceChangeMarker }),
    interfaceCidrs: interfaceCidrs(all),
  };
}

/**
 * Reads the network once, and after {@link LanWatch.start} once per interval until it is disposed of: addresses may
 * arrive late at boot and change with a DHCP lease. A later reading that fails counts as no change.
 * @throws Error of the first `read`
 */
export function watchLan({ read, timers, interval }: LanWatchOptions): LanWatch {
  let current = read();
  let cancel = () => {};

  function check(listeners: LanListeners) {
    cancel = timers.after(interval, () => check(listeners));
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
    start: check,
    [Symbol.dispose]() {
      cancel();
    },
  };
}

function ownAddresses({ address, addresses }: LanState): string {
  return JSON.stringify([address, addresses]);
}

import { networkInterfaces } from 'node:os';
import type { Timers } from '../core/clock.ts';
import { readDefaultRoutes } from './default-route.ts';
import { chooseLanAddress, type LanAddress, lanAddresses } from './lan-address.ts';

/** The hub's place in the home network, at one moment. */
export interface Lan {
  /** Where the hub is reached; null while the network is away. */
  readonly address: LanAddress | null;
  /** Every address that its certificate has to name, loopback left out. */
  readonly addresses: readonly string[];
}

export interface LanWatch extends Disposable {
  /** What was read last. */
  readonly current: Lan;
}

export interface LanWatchOptions {
  /** Reads the network; {@link readLan} with the setting filled in. */
  read(): Lan;
  readonly timers: Timers;
  /** Milliseconds between two looks. The kernel tells of changes only over netlink, which node doesn't speak. */
  readonly every: number;
  /** Called after a change, never for the first reading. */
  onChange(now: Lan, before: Lan): void;
}

/**
 * Reads the machine's interfaces and routes.
 * @param setting `lan.address`: `auto`, an IP address, or an interface's name
 * @throws Error where the operating system refuses to list its interfaces (a sandbox without AF_NETLINK)
 */
export function readLan(setting: string): Lan {
  const interfaces = networkInterfaces();
  const options = { setting, defaultRoutes: readDefaultRoutes() };
  return { address: chooseLanAddress(interfaces, options), addresses: lanAddresses(interfaces, options) };
}

/**
 * Looks at the network now and then, until it is disposed of: addresses come late at boot, and change with a DHCP
 * lease. A look that fails counts as no change, but for the first.
 * @throws what the first `read` throws
 */
export function watchLan({ read, timers, every, onChange }: LanWatchOptions): LanWatch {
  let current = read();
  let cancel = timers.after(every, look);

  function look() {
    cancel = timers.after(every, look);
    const before = current;
    try {
      current = read();
    } catch {
      return;
    }
    if (JSON.stringify(current) !== JSON.stringify(before)) onChange(current, before);
  }

  return {
    get current() {
      return current;
    },
    [Symbol.dispose]() {
      cancel();
    },
  };
}

import { existsSync, readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { LanAddress } from '../mdns/networks/lan-address.ts';
import { isInContainer } from '../system/container.ts';

/**
 * How the home network reaches the hub's address: `direct`, as on any machine; `published`: the address is the host's,
 * which forwards the ports to this container; `isolated`: the address probably exists only inside the container host.
 */
type Reachability = 'direct' | 'published' | 'isolated';

/** In procfs and sysfs. */
const SYSCTLS = '/proc/sys/net/core';
const INTERFACES = '/sys/class/net';
/** Interfaces with an address in the network of the host. */
const BRIDGED_TYPES = /^DEVTYPE=(macvlan|ipvlan)$/m;

/** Options of {@link reachability}; the defaults are those of this machine. */
interface Paths {
  readonly sysctls?: string;
  readonly interfaces?: string;
}

/**
 * Determines how the home network reaches the hub's address. A setting that names an own address or interface is the
 * owner's word that it is reachable.
 * @param setting `lan.address`
 * @param address the address that the setting leads to
 */
export function reachability(
  setting: string,
  address: LanAddress | null,
  env: NodeJS.ProcessEnv,
  { sysctls = SYSCTLS, interfaces = INTERFACES }: Paths = {},
): Reachability {
  if (address === null || address.loopback || !isInContainer(env) || !hasOwnNetwork(sysctls)) return 'direct';
  if (address.interface === null) return isIP(setting) === 0 ? 'direct' : 'published';
  if (setting !== 'auto') return 'direct';
  return BRIDGED_TYPES.test(readOrEmpty(join(interfaces, address.interface, 'uevent'))) ? 'direct' : 'isolated';
}

/**
 * Whether this process has another network namespace than the host. Only in the host's does the kernel show settings
 * that concern the whole machine.
 */
function hasOwnNetwork(sysctls: string): boolean {
  return existsSync(join(sysctls, 'somaxconn')) && !existsSync(join(sysctls, 'netdev_max_backlog'));
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

import { readFileSync } from 'node:fs';
import type { NetworkInterfaceInfo } from 'node:os';
import type { Interfaces } from './lan-address.ts';
import { ipv6Bytes } from './record-data.ts';

/** Address flags of linux/if_addr.h. */
const IFA_F_TEMPORARY = 0x01;
const IFA_F_DADFAILED = 0x08;
const IFA_F_DEPRECATED = 0x20;
const IFA_F_TENTATIVE = 0x40;

/**
 * The kernel's flags of IPv6 addresses, by {@link keyOf}; empty where it doesn't say.
 * @param file the kernel's table, in the form of /proc/net/if_inet6
 */
export function readIpv6Flags(file = '/proc/self/net/if_inet6'): ReadonlyMap<string, number> {
  let table: string;
  try {
    table = readFileSync(file, 'utf8');
  } catch {
    return new Map();
  }
  const rows = table.split('\n').map((line) => line.trim().split(/\s+/));
  return new Map(rows.map(([digits, , , , flags = '0', name]) => [`${name} ${digits}`, Number.parseInt(flags, 16)]));
}

/**
 * Leaves out the IPv6 addresses at which nobody should look for a hub: those that are not yet known to be its own, or known
 * to be another host's (RFC 4862 section 5.4), and, where the interface has better ones, temporary ones, which change
 * every day (RFC 8981), and those of a prefix that is on its way out.
 * @param keeping an address that is kept in any case: a person chose it
 */
export function steadyInterfaces(
  interfaces: Interfaces,
  flags: ReadonlyMap<string, number>,
  keeping: string,
): Interfaces {
  return Object.fromEntries(
    Object.entries(interfaces).map(([name, entries = []]) => {
      const flagsOf = (entry: NetworkInterfaceInfo) => flags.get(keyOf(name, entry)) ?? 0;
      const best = Math.min(...entries.filter(isFarReaching).map((entry) => badness(flagsOf(entry))));
      const isSteady = (entry: NetworkInterfaceInfo) =>
        !isFarReaching(entry) || (badness(flagsOf(entry)) === best && best < UNUSABLE);
      return [name, entries.filter((entry) => isSteady(entry) || entry.address === keeping)];
    }),
  );
}

const UNUSABLE = 3;

function badness(flags: number): number {
  if ((flags & (IFA_F_DADFAILED | IFA_F_TENTATIVE)) !== 0) return UNUSABLE;
  if ((flags & IFA_F_DEPRECATED) !== 0) return 2;
  return flags & IFA_F_TEMPORARY;
}

/** Whether it is an IPv6 address of more than its link. */
function isFarReaching({ family, address }: NetworkInterfaceInfo): boolean {
  return family === 'IPv6' && !/^fe[89ab]/i.test(address);
}

function keyOf(name: string, { address }: NetworkInterfaceInfo): string {
  return `${name} ${ipv6Bytes(address).toString('hex')}`;
}

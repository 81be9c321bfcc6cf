import { readFileSync } from 'node:fs';
import type { NetworkInterfaceInfo } from 'node:os';
import { ipv6Bytes } from '../../system/addresses.ts';
import type { NetworkInterfaces } from './lan-address.ts';

/** Route flags of linux/route.h: a usable route, and a route that rejects packets. */
const RTF_UP = 0x1;
const RTF_REJECT = 0x200;

/** Address flags of linux/if_addr.h. */
const IFA_F_TEMPORARY = 0x01;
const IFA_F_DADFAILED = 0x08;
const IFA_F_DEPRECATED = 0x20;
const IFA_F_TENTATIVE = 0x40;

/**
 * The interfaces of the machine's IPv4 default routes, best first. Empty if there are none, or if the table can't be
 * read: default routes are only a preference.
 * @param file the kernel's routing table, in the format of /proc/net/route. With `ProcSubset=pid` a process sees only
 * the file in its own directory.
 */
export function readDefaultRoutes(file = '/proc/self/net/route'): readonly string[] {
  // Columns: Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT
  const routes = readRows(file)
    .slice(1)
    .map(([name = '', destination, , flags = '0', , , metric, mask]) => ({
      name,
      isDefault: destination === '00000000' && mask === '00000000',
      flags: Number.parseInt(flags, 16),
      metric: Number(metric),
    }))
    .filter(({ isDefault, flags }) => isDefault && (flags & RTF_UP) !== 0 && (flags & RTF_REJECT) === 0)
    .sort((a, b) => a.metric - b.metric);
  return [...new Set(routes.map(({ name }) => name))];
}

/**
 * A string that changes whenever the interface loses its carrier or is replaced by another one with the same name. It
 * detects a cable that was unplugged for a second, or a Wi-Fi change to another network in which the hub has the same
 * address. Constant if the kernel's files can't be read.
 */
export function interfaceChangeMarker(name: string): string {
  return ['ifindex', 'carrier_changes'].map((file) => readOrEmpty(`/sys/class/net/${name}/${file}`).trim()).join('/');
}

/**
 * The kernel's flags of IPv6 addresses, by {@link addressKey}; empty if the table can't be read.
 * @param file the kernel's table, in the format of /proc/net/if_inet6
 */
export function readIpv6Flags(file = '/proc/self/net/if_inet6'): ReadonlyMap<string, number> {
  const rows = readRows(file);
  return new Map(rows.map(([digits, , , , flags = '0', name]) => [`${name} ${digits}`, Number.parseInt(flags, 16)]));
}

/**
 * Removes the IPv6 addresses that should not be announced: tentative ones and duplicates of another host's (RFC 4862
 * section 5.4). If the interface has better ones, also temporary ones, which change every day (RFC 8981), and
 * deprecated ones.
 * @param configured an address that always stays, because a person chose it
 */
export function excludeUnstableAddresses(
  interfaces: NetworkInterfaces,
  flags: ReadonlyMap<string, number>,
  configured: string,
): NetworkInterfaces {
  return Object.fromEntries(
    Object.entries(interfaces).map(([name, entries = []]) => {
      const flagsOf = (entry: NetworkInterfaceInfo) => flags.get(addressKey(name, entry)) ?? 0;
      const best = Math.min(...entries.filter(isRoutable).map((entry) => addressPenalty(flagsOf(entry))));
      const isStable = (entry: NetworkInterfaceInfo) =>
        !isRoutable(entry) || (addressPenalty(flagsOf(entry)) === best && best < UNUSABLE_PENALTY);
      return [name, entries.filter((entry) => isStable(entry) || entry.address === configured)];
    }),
  );
}

const UNUSABLE_PENALTY = 3;

function addressPenalty(flags: number): number {
  if ((flags & (IFA_F_DADFAILED | IFA_F_TENTATIVE)) !== 0) return UNUSABLE_PENALTY;
  if ((flags & IFA_F_DEPRECATED) !== 0) return 2;
  return flags & IFA_F_TEMPORARY;
}

/** Whether it is an IPv6 address beyond link-local scope. */
function isRoutable({ family, address }: NetworkInterfaceInfo): boolean {
  return family === 'IPv6' && !/^fe[89ab]/i.test(address);
}

function addressKey(name: string, { address }: NetworkInterfaceInfo): string {
  return `${name} ${ipv6Bytes(address).toString('hex')}`;
}

/** The columns of each line that is not empty. */
function readRows(file: string): string[][] {
  const lines = readOrEmpty(file).split('\n');
  return lines.filter((line) => line !== '').map((line) => line.trim().split(/\s+/));
}

/** The content of a file of the kernel; empty if it can't be read. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

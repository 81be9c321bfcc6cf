import { readFileSync } from 'node:fs';
import type { NetworkInterfaceInfo } from 'node:os';
import { ipv6Bytes } from '../records/record-data.ts';
import type { NetworkInterfaces } from './lan-address.ts';

/** Route flags of linux/route.h: usable, and one that only refuses. */
const RTF_UP = 0x1;
const RTF_REJECT = 0x200;

/** Address flags of linux/if_addr.h. */
const IFA_F_TEMPORARY = 0x01;
const IFA_F_DADFAILED = 0x08;
const IFA_F_DEPRECATED = 0x20;
const IFA_F_TENTATIVE = 0x40;

/**
 * The interfaces of the machine's IPv4 default routes, best first; empty where there is none, or where the kernel
 * doesn't say (it is a preference, not a need).
 * @param file the kernel's routing table, in the form of /proc/net/route (which `ProcSubset=pid` hides, but for a process's own)
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
 * A text that changes whenever the interface lost its carrier or is another one of the same name: a cable that was out for
 * a second, or a radio that is in another network now, where the hub has the same address as in the one before. The
 * same text always, where the kernel doesn't say.
 */
export function interfaceEpoch(name: string): string {
  return ['ifindex', 'carrier_changes'].map((file) => readOrEmpty(`/sys/class/net/${name}/${file}`).trim()).join('/');
}

/**
 * The kernel's flags of IPv6 addresses, by {@link addressKey}; empty where it doesn't say.
 * @param file the kernel's table, in the form of /proc/net/if_inet6
 */
export function readIpv6Flags(file = '/proc/self/net/if_inet6'): ReadonlyMap<string, number> {
  const rows = readRows(file);
  return new Map(rows.map(([digits, , , , flags = '0', name]) => [`${name} ${digits}`, Number.parseInt(flags, 16)]));
}

/**
 * Leaves out the IPv6 addresses at which a hub should not be looked for: those that are not yet known to be its own, or known
 * to be another host's (RFC 4862 section 5.4), and, where the interface has better ones, temporary ones, which change
 * every day (RFC 8981), and those of a prefix that is on its way out.
 * @param keeping an address that is kept in any case: a person chose it
 */
export function excludeUnstableAddresses(
  interfaces: NetworkInterfaces,
  flags: ReadonlyMap<string, number>,
  keeping: string,
): NetworkInterfaces {
  return Object.fromEntries(
    Object.entries(interfaces).map(([name, entries = []]) => {
      const flagsOf = (entry: NetworkInterfaceInfo) => flags.get(addressKey(name, entry)) ?? 0;
      const best = Math.min(...entries.filter(isRoutable).map((entry) => addressPenalty(flagsOf(entry))));
      const isStable = (entry: NetworkInterfaceInfo) =>
        !isRoutable(entry) || (addressPenalty(flagsOf(entry)) === best && best < UNUSABLE_PENALTY);
      return [name, entries.filter((entry) => isStable(entry) || entry.address === keeping)];
    }),
  );
}

const UNUSABLE_PENALTY = 3;

function addressPenalty(flags: number): number {
  if ((flags & (IFA_F_DADFAILED | IFA_F_TENTATIVE)) !== 0) return UNUSABLE_PENALTY;
  if ((flags & IFA_F_DEPRECATED) !== 0) return 2;
  return flags & IFA_F_TEMPORARY;
}

/** Whether it is an IPv6 address of more than its link. */
function isRoutable({ family, address }: NetworkInterfaceInfo): boolean {
  return family === 'IPv6' && !/^fe[89ab]/i.test(address);
}

function addressKey(name: string, { address }: NetworkInterfaceInfo): string {
  return `${name} ${ipv6Bytes(address).toString('hex')}`;
}

/** The columns of each line. */
function readRows(file: string): string[][] {
  const lines = readOrEmpty(file).split('\n');
  return lines.filter((line) => line !== '').map((line) => line.trim().split(/\s+/));
}

/** One of the kernel's files; empty where it can't be read. */
function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

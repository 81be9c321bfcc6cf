import { readFileSync } from 'node:fs';

/** Route flags of linux/route.h: usable, and one that only refuses. */
const RTF_UP = 0x1;
const RTF_REJECT = 0x200;

/**
 * The interfaces of the machine's IPv4 default routes, best first; empty where there is none, or where the kernel
 * doesn't say (it is a preference, not a need).
 * @param file the kernel's routing table, in the form of /proc/net/route (which `ProcSubset=pid` hides, but for a process's own)
 */
export function readDefaultRoutes(file = '/proc/self/net/route'): readonly string[] {
  let table: string;
  try {
    table = readFileSync(file, 'utf8');
  } catch {
    return [];
  }
  return parseDefaultRoutes(table);
}

/** Reads the table's columns: Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT. */
function parseDefaultRoutes(table: string): readonly string[] {
  const routes = table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
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

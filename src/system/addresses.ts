import { BlockList, isIP } from 'node:net';

/**
 * The address of a connection, with IPv4 addresses in their usual form. A socket that listens on both families, as a
 * socket from systemd may, reports IPv4 addresses as IPv4-mapped IPv6 addresses (RFC 4291, 2.5.5.2).
 */
export function unmapIpv4(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/** Whether two IP addresses are equal. An IPv6 address may be written in any way; its zone is ignored. */
export function isSameAddress(a: string, b: string): boolean {
  const [family, other] = [isIP(a), isIP(b)];
  if (family !== other) return false;
  const list = new BlockList();
  const type = family === 6 ? 'ipv6' : 'ipv4';
  list.addAddress(b.replace(/%.*$/, ''), type);
  return list.check(a, type);
}

/** Whether a URL with this `hostname` always leads to the local machine. */
export function isLoopbackHost(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** RFC 1918, 3927, 4193 and 4291. */
const PRIVATE_NETWORKS = new BlockList();
PRIVATE_NETWORKS.addSubnet('10.0.0.0', 8);
PRIVATE_NETWORKS.addSubnet('172.16.0.0', 12);
PRIVATE_NETWORKS.addSubnet('192.168.0.0', 16);
PRIVATE_NETWORKS.addSubnet('169.254.0.0', 16);
PRIVATE_NETWORKS.addSubnet('fc00::', 7, 'ipv6');
PRIVATE_NETWORKS.addSubnet('fe80::', 10, 'ipv6');

/** Where a link can be opened: only on the hub's machine, only in its home network, or anywhere. */
export type UrlAddressScope = 'machine' | 'home' | 'anywhere';

/** Where a link can be opened, judged by its IP address; `anywhere` for host names other than `localhost`. */
export function urlAddressScope(link: string): UrlAddressScope {
  const hostname = URL.parse(link)?.hostname ?? '';
  if (isLoopbackHost(hostname)) return 'machine';
  return isPrivateAddress(hostname.replace(/^\[|\]$/g, '')) ? 'home' : 'anywhere';
}

/** Whether an IP address is private or link-local, and not one of the internet. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && PRIVATE_NETWORKS.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** An address or a host name in the form for a URL: IPv6 in brackets (RFC 3986, 3.2.2). */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** The 16 bytes of an IPv6 address. @param address hexadecimal groups, with or without `::`; no zone, no dotted part */
export function ipv6Bytes(address: string): Buffer {
  const [head = '', tail] = address.split('::').map((part) => part.split(':').filter((group) => group !== ''));
  const groups = [...head, ...Array(8 - head.length - (tail?.length ?? 0)).fill('0'), ...(tail ?? [])];
  return Buffer.from(groups.map((group) => Number.parseInt(group, 16)).flatMap((group) => [group >> 8, group]));
}

import { BlockList, isIP } from 'node:net';

/**
 * An address of a connection. Where one socket listens for both families, as one that systemd has opened may, IPv4
 * addresses come in the form of IPv6 (RFC 4291, 2.5.5.2).
 */
export function unmapIpv4(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '');
}

/** IPv6 addresses can be written in many ways; a zone is no matter. */
export function isSameAddress(a: string, b: string): boolean {
  const [family, other] = [isIP(a), isIP(b)];
  if (family !== other) return false;
  const among = new BlockList();
  const type = family === 6 ? 'ipv6' : 'ipv4';
  among.addAddress(b.replace(/%.*$/, ''), type);
  return among.check(a, type);
}

/** Whether a URL with this `hostname` leads to the machine that it is used on. */
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

/** From where a link can be opened: on the machine that the hub runs on alone, in its home network, or anywhere. */
export type UrlReach = 'machine' | 'home' | 'anywhere';

/** From where a link can be opened, as far as its host is an address. */
export function urlReach(link: string): UrlReach {
  const hostname = URL.parse(link)?.hostname ?? '';
  if (isLoopbackHost(hostname)) return 'machine';
  return isPrivateAddress(hostname.replace(/^\[|\]$/g, '')) ? 'home' : 'anywhere';
}

/** Whether it is an address of a home network, and none of the internet. */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && PRIVATE_NETWORKS.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/** An address or a name as a URL has it: IPv6 in brackets (RFC 3986, 3.2.2). */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

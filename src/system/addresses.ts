import { BlockList, isIP } from 'node:net';

/**
 * An address of a connection. Where one socket listens for both families, as one that systemd has opened may, IPv4
 * addresses come in the form of IPv6 (RFC 4291, 2.5.5.2).
 */
export function withoutMapping(address: string): string {
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

/** An address or a name as a URL has it: IPv6 in brackets (RFC 3986, 3.2.2). */
export function urlHost(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

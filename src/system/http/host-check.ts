import { isIP } from 'node:net';
import { isSameAddress, unmapIpv4 } from '../addresses.ts';

/**
 * Whether a request is meant for this hub. A web page can make its own host name point to the hub (DNS rebinding), so
 * that a browser in the home network sends requests there; the `Host` header then has the foreign name. All IP
 * addresses are accepted, because behind NAT or a VPN the hub can't know all of its own.
 * @param host the `Host` header
 * @param names the hub's DNS names, in lower case; a leading `*.` matches any label
 */
export function isOwnHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return false;
  const [, hostname, port] = /^(\[[0-9a-f:.]+\]|[^:]+)(?::([1-9]\d{0,4}))?$/i.exec(host) ?? [];
  const name = hostname?.toLowerCase();
  if (name === undefined || Number(port ?? 0) > 65_535) return false;
  return name.startsWith('[') ? isIP(name.slice(1, -1)) === 6 : isIP(name) === 4 || matchesAnyName(name, names);
}

/**
 * Whether a host is certainly this hub: an IP address in a request may be another machine's.
 * @param hostname of a `Host` that {@link isOwnHost} accepts, without the port
 * @param local the local address of the connection
 * @param isLeafFor whether the hub's server certificate is for an address
 */
export function isVerifiedOwnHost(
  hostname: string,
  local: string | undefined,
  isLeafFor: (address: string) => boolean,
): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) === 0) return true;
  return (local !== undefined && isSameAddress(address, unmapIpv4(local))) || isLeafFor(address);
}

/**
 * Whether a connection is meant for this hub, by the server name in its TLS handshake (RFC 6066, 3); true if there is
 * none. IP addresses are not permitted there, and are ignored.
 * @param socket of a request; without TLS it has no server name
 */
export function isOwnServerName(socket: object, names: readonly string[]): boolean {
  const name: unknown = 'servername' in socket ? socket.servername : undefined;
  if (typeof name !== 'string' || name === '') return true;
  return isIP(name) !== 0 || matchesAnyName(name.toLowerCase(), names);
}

/** A name of the owner's own certificate may begin with `*.`, which matches one label (RFC 9525, 6.3). */
function matchesAnyName(name: string, names: readonly string[]): boolean {
  const absolute = name.replace(/\.$/, '');
  return names.includes(absolute) || names.includes(absolute.replace(/^[^.]+/, '*'));
}

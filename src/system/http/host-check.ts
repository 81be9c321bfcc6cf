import { isIP } from 'node:net';
import { isSameAddress, unmapIpv4 } from '../addresses.ts';

/**
 * Whether a request was meant for this hub. A page on the web can make a name of its own point to the hub (DNS
 * rebinding) and so have a browser at home send requests there; the name in `Host` gives it away. Addresses are
 * accepted, because behind NAT or a VPN the hub can't know all of its own.
 * @param host the `Host` header
 * @param names the hub's DNS names, in lower case; `*.` at the beginning of one stands for any label
 */
export function isOwnHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return false;
  const [, found, port] = /^(\[[0-9a-f:.]+\]|[^:]+)(?::([1-9]\d{0,4}))?$/i.exec(host) ?? [];
  const name = found?.toLowerCase();
  if (name === undefined || Number(port ?? 0) > 65_535) return false;
  return name.startsWith('[') ? isIP(name.slice(1, -1)) === 6 : isIP(name) === 4 || matchesAnyName(name, names);
}

/**
 * Whether nobody else can have been meant: an address that a request names may be another's.
 * @param hostname of a `Host` that {@link isOwnHost} takes, without the port
 * @param local the address that the connection came to
 * @param isLeafFor whether the hub's leaf is for an address
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
 * Whether a connection was meant for this hub: by the name in its TLS handshake (RFC 6066, 3), where it gave one. An
 * address has no business there and says nothing.
 * @param socket of a request; one without TLS has no such name
 */
export function isOwnServerName(socket: object, names: readonly string[]): boolean {
  const name: unknown = 'servername' in socket ? socket.servername : undefined;
  if (typeof name !== 'string' || name === '') return true;
  return isIP(name) !== 0 || matchesAnyName(name.toLowerCase(), names);
}

/** A name of the user's own certificate may begin with `*.`, which stands for one label (RFC 9525, 6.3). */
function matchesAnyName(name: string, names: readonly string[]): boolean {
  const absolute = name.replace(/\.$/, '');
  return names.includes(absolute) || names.includes(absolute.replace(/^[^.]+/, '*'));
}

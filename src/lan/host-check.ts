import { isIP } from 'node:net';

/**
 * Whether a request was meant for this hub. A page on the web can make a name of its own point to the hub (DNS
 * rebinding) and so have a browser at home send requests there; the name in `Host` gives it away. Addresses are
 * accepted, because behind NAT or a VPN the hub can't know all of its own.
 * @param host the `Host` header
 * @param names the hub's DNS names, in lower case
 */
export function isOwnHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return false;
  const name = /^(\[[0-9a-f:.]+\]|[^:]+)(:\d{1,5})?$/i.exec(host)?.[1]?.toLowerCase();
  if (name === undefined) return false;
  return name.startsWith('[')
    ? isIP(name.slice(1, -1)) === 6
    : isIP(name) === 4 || names.includes(name.replace(/\.$/, ''));
}

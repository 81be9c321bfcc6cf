import { BlockList, isIP } from 'node:net';
import type { PermittedNames } from '../system/x509/certificates.ts';

/** Domains that have no owner on the internet: RFC 6762, RFC 6761, RFC 8375; ICANN reserved `internal` in 2024. */
const HOME_DOMAINS = ['local', 'localhost', 'home.arpa', 'internal'];

/**
 * Networks where a hub may have an address: loopback, private and link-local (RFC 1918, 3927, 4193, 4291, 6598). Also
 * all IPv6 global unicast addresses, because the provider assigns the prefix, and some providers change it every day.
 */
const HOME_NETWORKS = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '100.64.0.0/10',
  '::1/128',
  'fe80::/10',
  'fc00::/7',
  '2000::/3',
];

/** Names that every verifier can parse in name constraints. Any other name would make the CA's certificate unusable. */
const CONSTRAINABLE_NAME = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

/**
 * The names and networks that a new CA of the hub may issue certificates for. They limit what a stolen CA key can do:
 * it can't impersonate a site on the internet, even towards a machine that trusts the CA for everything.
 * @param names the hub's own, in lower case
 * @param addresses those that the hub has or is configured to have
 */
export function permittedNames(names: readonly string[], addresses: readonly string[]): PermittedNames {
  const isHomeName = (name: string) => HOME_DOMAINS.some((domain) => name === domain || name.endsWith(`.${domain}`));
  const known = new BlockList();
  for (const network of HOME_NETWORKS) {
    const [address = '', bits = ''] = network.split('/');
    known.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  const others = addresses
    .map((address) => address.replace(/%.*$/, ''))
    .filter((address) => isIP(address) !== 0 && !known.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'));
  return {
    names: [...HOME_DOMAINS, ...names.filter((name) => CONSTRAINABLE_NAME.test(name) && !isHomeName(name))],
    networks: [...HOME_NETWORKS, ...[...new Set(others)].map((one) => `${one}/${isIP(one) === 6 ? 128 : 32}`)],
  };
}

import { BlockList, isIP } from 'node:net';
import type { PermittedNames } from '../system/x509/certificates.ts';

/** Domains that are nobody's on the internet: RFC 6762, RFC 6761, RFC 8375; `internal` was reserved by ICANN in 2024. */
const HOME_DOMAINS = ['local', 'localhost', 'home.arpa', 'internal'];

/**
 * Where a hub may be in a home: loopback, private and link-local networks (RFC 1918, 3927, 4193, 4291, 6598). Also all of
 * IPv6's global unicast: the prefix there comes from the provider, and another one each day with some.
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

/** A name that every verifier can read in name constraints: one that can't be read would spoil the CA's certificate. */
const CONSTRAINABLE_NAME = /^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

/**
 * What a new CA of the hub may issue certificates for: whoever steals its key can't be somebody else on the internet, not
 * even towards a machine that trusts it for everything.
 * @param names the hub's own, in lower case
 * @param addresses those that it has, or is to have
 */
export function permittedNames(names: readonly string[], addresses: readonly string[]): PermittedNames {
  const isAtHome = (name: string) => HOME_DOMAINS.some((domain) => name === domain || name.endsWith(`.${domain}`));
  const known = new BlockList();
  for (const network of HOME_NETWORKS) {
    const [address = '', bits = ''] = network.split('/');
    known.addSubnet(address, Number(bits), isIP(address) === 6 ? 'ipv6' : 'ipv4');
  }
  const others = addresses
    .map((address) => address.replace(/%.*$/, ''))
    .filter((address) => isIP(address) !== 0 && !known.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'));
  return {
    names: [...HOME_DOMAINS, ...names.filter((name) => CONSTRAINABLE_NAME.test(name) && !isAtHome(name))],
    networks: [...HOME_NETWORKS, ...[...new Set(others)].map((one) => `${one}/${isIP(one) === 6 ? 128 : 32}`)],
  };
}

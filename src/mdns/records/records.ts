import type { HostAddress } from '../networks/segments.ts';

/** A resource record as dns-packet encodes it. */
export interface ResourceRecord {
  readonly name: string;
  readonly type: 'PTR' | 'SRV' | 'TXT' | 'A' | 'AAAA';
  /** Seconds; 0 is a goodbye (RFC 6762 section 10.1). */
  readonly ttl: number;
  /** The cache-flush bit: no other host has records with this name and type (RFC 6762 section 10.2). */
  readonly flush: boolean;
  readonly data: string | { readonly port: number; readonly target: string } | readonly Buffer[];
}

/** The hub as an mDNS service. */
export interface ServiceDescription {
  /** See {@link toInstanceName}. */
  readonly instanceName: string;
  /** The hub's id. */
  readonly id: string;
  /** The host's domain name, one of {@link hostNames}. */
  readonly host: string;
  readonly httpsPort: number;
  /** The keys and values of the TXT record besides `txtvers` and `id`. */
  readonly txt: Readonly<Record<string, string>>;
  /** The hub's addresses on the segment. */
  readonly addresses: readonly HostAddress[];
}

const SERVICE_TYPE = '_latchkey._tcp.local';

/** In s. RFC 6762 section 10: 2 minutes for records with a host name or address, 75 minutes for others. */
const HOST_TTL = 120;
const OTHER_TTL = 4500;

/** The longest label of a domain name, in octets (RFC 1035 section 2.3.4). */
const MAX_LABEL = 63;

/**
 * Converts a name that a person typed to an instance name (RFC 6763 section 4.1.1): composed characters (RFC 5198), no
 * control characters, at most 63 octets. A dot becomes a hyphen, because the wire encoder would end the label there.
 * @param suffix stays complete if the name must be shortened
 */
export function toInstanceName(name: string, suffix = ''): string {
  const clean = name
    .normalize('NFC')
    .replace(/\p{Cc}/gu, '')
    .replaceAll('.', '-')
    .trim();
  const characters = Array.from(clean === '' ? 'Latchkey' : clean);
  while (Buffer.byteLength(characters.join('') + suffix) > MAX_LABEL) characters.pop();
  return characters.join('').trimEnd() + suffix;
}

/** Lower case for comparisons; only ASCII letters are case-insensitive (RFC 6762 section 16). */
export function foldCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** The full domain name of an instance. */
export function serviceInstanceName(instanceName: string): string {
  return `${instanceName}.${SERVICE_TYPE}`;
}

/**
 * The hub's possible host names. The first is its own; the others are for when another device claims it. The list is
 * fixed, because the server certificate contains all of them.
 */
export function hostNames(id: string): readonly [own: string, ...others: string[]] {
  return [`${id}.local`, `${id}-2.local`, `${id}-3.local`, `${id}-4.local`];
}

/** The hub's unique records (RFC 6762 section 2): SRV, TXT and its addresses. */
export function uniqueRecords(service: ServiceDescription): readonly ResourceRecord[] {
  const { instanceName, id, host, httpsPort, txt, addresses } = service;
  const name = serviceInstanceName(instanceName);
  const strings = Object.entries({ txtvers: '1', id, ...txt }).map(([key, value]) => Buffer.from(`${key}=${value}`));
  return [
    { name, type: 'SRV', ttl: HOST_TTL, flush: true, data: { port: httpsPort, target: host } },
    { name, type: 'TXT', ttl: OTHER_TTL, flush: true, data: strings },
    ...addressRecords(host, addresses),
  ];
}

/**
 * The address records of a host. @param addresses only those that the segment can reach, because an appliance tries
 * each one
 */
export function addressRecords(host: string, addresses: readonly HostAddress[]): readonly ResourceRecord[] {
  return addresses.map(({ family, address }) => {
    const type = family === 'IPv4' ? 'A' : 'AAAA';
    return { name: host, type, ttl: HOST_TTL, flush: true, data: address };
  });
}

/** The PTR record from the service type to the instance. */
export function instancePointer(instanceName: string): ResourceRecord {
  return { name: SERVICE_TYPE, type: 'PTR', ttl: OTHER_TTL, flush: false, data: serviceInstanceName(instanceName) };
}

/**
 * The record that lists the service type (RFC 6763 section 9). Other hosts share it, so the hub sends no goodbye for
 * it.
 */
export const SERVICE_TYPE_POINTER: ResourceRecord = {
  name: '_services._dns-sd._udp.local',
  type: 'PTR',
  ttl: OTHER_TTL,
  flush: false,
  data: SERVICE_TYPE,
};

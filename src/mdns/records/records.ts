import type { HostAddress } from '../networks/segments.ts';

/** A resource record as dns-packet encodes it. */
export interface ResourceRecord {
  readonly name: string;
  readonly type: 'PTR' | 'SRV' | 'TXT' | 'A' | 'AAAA';
  /** Seconds; 0 is a goodbye (RFC 6762 section 10.1). */
  readonly ttl: number;
  /** The cache-flush bit: no other host has records of this name and type (RFC 6762 section 10.2). */
  readonly flush: boolean;
  readonly data: string | { readonly port: number; readonly target: string } | readonly Buffer[];
}

/** What the hub announces about itself. */
export interface ServiceDescription {
  /** See {@link toInstanceName}. */
  readonly instanceName: string;
  /** The hub's id. */
  readonly id: string;
  /** The host's domain name, one of {@link hostNames}. */
  readonly host: string;
  readonly httpsPort: number;
  /** The TXT record's keys and values beside `txtvers` and `id`. */
  readonly txt: Readonly<Record<string, string>>;
  /** Those at which the segment reaches the hub. */
  readonly addresses: readonly HostAddress[];
}

const SERVICE_TYPE = '_latchkey._tcp.local';

/** RFC 6762 section 10: records that hold a host's name or address live 2 minutes, others 75. */
const HOST_TTL = 120;
const OTHER_TTL = 4500;

/** The longest label of a domain name, in octets (RFC 1035 section 2.3.4). */
const MAX_LABEL = 63;

/**
 * Makes an instance name (RFC 6763 section 4.1.1) of what a person typed: composed characters (RFC 5198), no control
 * characters, at most 63 octets. A dot becomes a hyphen, since the wire encoding below us takes it for the end of a
 * label.
 * @param suffix is kept whole where the name has to be cut
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

/** In small letters, where case does not count: that is so for ASCII alone (RFC 6762 section 16). */
export function foldCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}

/** The full domain name of an instance. */
export function serviceInstanceName(instanceName: string): string {
  return `${instanceName}.${SERVICE_TYPE}`;
}

/**
 * The domain names that the hub may have as a host, the best one first: the others are for when another device claims that. They
 * are always the same, because the hub's certificate is for all of them.
 */
export function hostNames(id: string): readonly [own: string, ...others: string[]] {
  return [`${id}.local`, `${id}-2.local`, `${id}-3.local`, `${id}-4.local`];
}

/** The records that are the hub's alone: SRV and TXT, and its addresses. */
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

/** Only addresses that the segment can reach, whatever else the machine has: an appliance tries each one. */
export function addressRecords(host: string, addresses: readonly HostAddress[]): readonly ResourceRecord[] {
  return addresses.map(({ family, address }) => {
    const type = family === 'IPv4' ? 'A' : 'AAAA';
    return { name: host, type, ttl: HOST_TTL, flush: true, data: address };
  });
}

/** The record that makes the instance one of its service type's. */
export function instancePointer(instanceName: string): ResourceRecord {
  return { name: SERVICE_TYPE, type: 'PTR', ttl: OTHER_TTL, flush: false, data: serviceInstanceName(instanceName) };
}

/** The record that lists the service type (RFC 6763 section 9). Other hosts share it, so the hub says no goodbye for it. */
export const SERVICE_TYPE_POINTER: ResourceRecord = {
  name: '_services._dns-sd._udp.local',
  type: 'PTR',
  ttl: OTHER_TTL,
  flush: false,
  data: SERVICE_TYPE,
};

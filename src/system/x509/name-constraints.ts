import { BlockList, isIP } from 'node:net';
import { Extension, GeneralNames, type JsonGeneralName, type X509Certificate } from '@peculiar/x509';
import type { PermittedNames } from './certificates.ts';

/** id-ce-nameConstraints (RFC 5280 section 4.2.1.10). */
const NAME_CONSTRAINTS = '2.5.29.30';

/** DER tags: SEQUENCE, and `permittedSubtrees [0]`. */
const SEQUENCE = 0x30;
const PERMITTED = 0xa0;

/**
 * What a CA may issue certificates for, as an extension of its certificate. It is not critical: Mbed TLS (2.28)
 * rejects a critical extension that it does not know, and the verifiers that know this one apply it either way.
 */
export function nameConstraints({ names, networks }: PermittedNames): Extension {
  const subtrees = [
    ...names.map((value): JsonGeneralName => ({ type: 'dns', value })),
    ...networks.map((value): JsonGeneralName => ({ type: 'ip', value })),
    // GeneralSubtree without its optional members is a SEQUENCE of one GeneralName.
  ].map((name) => Buffer.from(new GeneralNames([name]).rawData));
  return new Extension(NAME_CONSTRAINTS, false, encode(SEQUENCE, encode(PERMITTED, Buffer.concat(subtrees))));
}

type Bytes = Buffer<ArrayBuffer>;

/** A DER element: its tag, all of it, and what is in it. */
interface Element {
  readonly tag: number;
  readonly raw: Bytes;
  readonly content: Bytes;
}

/** Whether certificates below a CA may have a name or an IP address. */
export interface Permission {
  name(name: string): boolean;
  address(address: string): boolean;
}

/**
 * Reads what a CA may issue certificates for; everything where its certificate has no name constraints. Only those that
 * {@link nameConstraints} makes are understood: permitted DNS names and networks.
 */
export function permissionOf(authority: X509Certificate): Permission {
  const extension = authority.getExtension(NAME_CONSTRAINTS);
  if (extension === null) return { name: () => true, address: () => true };
  const names: string[] = [];
  const networks = new BlockList();
  for (const { type, value } of permittedSubtrees(Buffer.from(extension.value))) {
    if (type === 'dns') names.push(value);
    if (type !== 'ip') continue;
    const [address = '', bits = ''] = value.split('/');
    networks.addSubnet(address, Number(bits), family(address));
  }
  return {
    name: (name) => names.some((base) => name === base || name.endsWith(`.${base}`)),
    address: (address) => networks.check(address, family(address)),
  };
}

function permittedSubtrees(der: Bytes): JsonGeneralName[] {
  const [constraints] = elements(der);
  const [permitted] = elements(constraints?.content ?? Buffer.alloc(0));
  if (permitted?.tag !== PERMITTED) return [];
  return elements(permitted.content).flatMap(({ raw }) => new GeneralNames(raw).toJSON());
}

function family(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

function encode(tag: number, content: Bytes): Bytes {
  const { length } = content;
  const long = length > 0xff ? [0x82, length >> 8, length & 0xff] : [0x81, length];
  return Buffer.concat([Buffer.from([tag, ...(length < 0x80 ? [length] : long)]), content]);
}

/** The DER elements that follow each other; lengths of up to two octets, which is what {@link encode} writes. */
function elements(der: Bytes): Element[] {
  const found: Element[] = [];
  for (let at = 0; at + 1 < der.length; ) {
    const first = der.readUInt8(at + 1);
    const octets = first > 0x80 ? first - 0x80 : 0;
    const begin = at + 2 + octets;
    const end = begin + (octets === 0 ? first : der.readUIntBE(at + 2, octets));
    found.push({ tag: der.readUInt8(at), raw: der.subarray(at, end), content: der.subarray(begin, end) });
    at = end;
  }
  return found;
}

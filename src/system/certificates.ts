import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import {
  addressBytes,
  bitString,
  boolean,
  elementsIn,
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  utf8String,
} from './der.ts';

/** The hub's private certificate authority. */
export interface Authority {
  /** The CA certificate, PEM. Public: this is what appliances pin. */
  readonly certificate: string;
  /** Its private key, PKCS#8 PEM. A secret: to be sealed where it is stored. */
  readonly key: string;
}

/** What a leaf certificate is issued for. */
export interface LeafRequest {
  /** DNS names for the SAN, in ASCII. */
  readonly names: readonly string[];
  /** IPv4 and IPv6 addresses for the SAN; an IPv6 zone (`%eth0`) is left out, since it means nothing to a peer. */
  readonly addresses: readonly string[];
  /** Milliseconds since 1970 by the wall clock, right or wrong. */
  readonly now: number;
  /** Whose it is, for people who look at it. Default: `Latchkey hub`. */
  readonly owner?: string;
}

/** A server certificate that an {@link Authority} issued. */
export interface Leaf {
  /** The leaf, then its CA, PEM: a peer that knows nothing but the pin finds the pinned key in the handshake. */
  readonly certificate: string;
  /** Its private key, PKCS#8 PEM. */
  readonly key: string;
  /** When it ends, in milliseconds since 1970. */
  readonly notAfter: number;
}

/** Before any hub was born: a hub may boot with a clock in the past, and its appliances with it. */
const NOT_BEFORE = new Date('2000-01-01T00:00:00Z');

/** RFC 5280 section 4.1.2.5: "no well-defined expiration date". */
const END_OF_TIME = new Date('9999-12-31T23:59:59Z');

/** No hub of this version runs earlier, whatever its clock says: a leaf issued in "1970" would be dead on arrival. */
const EARLIEST_ISSUE = Date.UTC(2026, 0, 1);

const LEAF_YEARS = 10;

/** X.509 version 3 (RFC 5280 section 4.1.2.1). */
const VERSION = explicit(0, integer(Buffer.from([2])));

/** RFC 5758 section 3.2: it has no parameters. */
const ECDSA_WITH_SHA256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'));

/** `keyCertSign` and `cRLSign`, `digitalSignature`: RFC 5280 section 4.2.1.3. */
const AUTHORITY_USAGE = bitString(Buffer.from([0b0000_0110]), 1);
const LEAF_USAGE = bitString(Buffer.from([0b1000_0000]), 7);

/** `id-kp-serverAuth`: RFC 5280 section 4.2.1.12. */
const SERVER_AUTH = sequence(objectIdentifier('1.3.6.1.5.5.7.3.1'));

/** What a certificate says; names and public key as DER. */
interface Statement {
  readonly serial: Buffer;
  readonly issuer: Buffer;
  readonly subject: Buffer;
  readonly notAfter: Date;
  readonly publicKey: Buffer;
  readonly extensions: readonly Buffer[];
}

/**
 * Makes a private CA (P-256, valid from 2000 to 9999) that may issue leaves and nothing below them. The profile is RFC
 * 5280's, so that strict verifiers take it.
 * @param owner whose it is, for people who look at it
 */
export async function createAuthority(owner = 'Latchkey hub'): Promise<Authority> {
  const { publicKey, privateKey } = createKeys();
  const serial = createSerial();
  // A name of its own: verifiers that know several hubs' CAs look an issuer up by its name.
  const name = commonName(`${owner} CA ${serial.toString('hex', 0, 4)}`);
  const extensions = [
    extension('2.5.29.19', sequence(boolean(true), integer(Buffer.from([0]))), true),
    extension('2.5.29.15', AUTHORITY_USAGE, true),
    extension('2.5.29.14', octetString(keyIdentifier(publicKey))),
  ];
  const statement = { serial, issuer: name, subject: name, notAfter: END_OF_TIME, publicKey, extensions };
  return { certificate: signed(statement, privateKey), key: exported(privateKey) };
}

/**
 * Issues a server certificate (P-256, from 2000 to ten years after `now`) with a fresh key.
 * @throws Error where the authority's PEM is damaged, or an address is none
 */
export async function issueLeaf(
  authority: Authority,
  { names, addresses, now, owner = 'Latchkey hub' }: LeafRequest,
): Promise<Leaf> {
  const { publicKey, privateKey } = createKeys();
  const issuer = new X509Certificate(authority.certificate);
  const notAfter = leafEnd(now);
  const extensions = [
    extension('2.5.29.19', sequence(), true),
    extension('2.5.29.15', LEAF_USAGE, true),
    extension('2.5.29.37', SERVER_AUTH),
    extension('2.5.29.17', sequence(...alternativeNames(names, addresses))),
    extension('2.5.29.14', octetString(keyIdentifier(publicKey))),
    extension('2.5.29.35', sequence(implicit(0, keyIdentifier(spki(issuer.publicKey))))),
  ];
  const subject = commonName(owner);
  const statement = { serial: createSerial(), issuer: subjectOf(issuer), subject, notAfter, publicKey, extensions };
  return {
    certificate: signed(statement, createPrivateKey(authority.key)) + issuer.toString(),
    key: exported(privateKey),
    notAfter: notAfter.getTime(),
  };
}

/**
 * A certificate's pin: base64url SHA-256 of its SubjectPublicKeyInfo, what RFC 7469 section 2.4 pins.
 * @param certificate PEM; of several certificates the first one counts
 * @throws Error where it is no certificate
 */
export function pin(certificate: string): string {
  return createHash('sha256')
    .update(spki(new X509Certificate(certificate).publicKey))
    .digest('base64url');
}

/** The certificate, signed with ECDSA and SHA-256: PEM. */
function signed({ serial, issuer, subject, notAfter, publicKey, extensions }: Statement, key: KeyObject): string {
  const statement = sequence(
    VERSION,
    integer(serial),
    ECDSA_WITH_SHA256,
    issuer,
    sequence(time(NOT_BEFORE), time(notAfter)),
    subject,
    publicKey,
    explicit(3, sequence(...extensions)),
  );
  const certificate = sequence(statement, ECDSA_WITH_SHA256, bitString(sign('sha256', statement, key)));
  return new X509Certificate(certificate).toString();
}

function extension(identifier: string, value: Buffer, critical = false): Buffer {
  return sequence(objectIdentifier(identifier), ...(critical ? [boolean(true)] : []), octetString(value));
}

/** A name that consists of a common name alone. */
function commonName(text: string): Buffer {
  return sequence(set(sequence(objectIdentifier('2.5.4.3'), utf8String(text))));
}

/** As it is in the certificate: an issuer's name has to be the same to the byte. */
function subjectOf({ raw }: X509Certificate): Buffer {
  const [statement = raw] = elementsIn(raw);
  const [, , , , , subject] = elementsIn(statement);
  if (subject === undefined) throw new RangeError('a certificate has no subject');
  return subject;
}

function createKeys(): { readonly publicKey: Buffer; readonly privateKey: KeyObject } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { publicKey: spki(publicKey), privateKey };
}

/** RFC 5280 section 4.2.1.2, method 1: SHA-1 of the key without what says of which kind it is. @param publicKey SPKI */
function keyIdentifier(publicKey: Buffer): Buffer {
  const [, key = publicKey] = elementsIn(publicKey);
  return createHash('sha1').update(key.subarray(-65)).digest();
}

/** 126 random bits below a fixed one: a positive INTEGER of at most 20 octets (RFC 5280 section 4.1.2.2). */
function createSerial(): Buffer {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  return serial;
}

function leafEnd(now: number): Date {
  const end = new Date(Math.max(now, EARLIEST_ISSUE));
  end.setUTCFullYear(end.getUTCFullYear() + LEAF_YEARS);
  end.setUTCMilliseconds(0); // what the certificate can say
  return end < END_OF_TIME ? end : END_OF_TIME;
}

/** `dNSName` and `iPAddress`: RFC 5280 section 4.2.1.6. */
function alternativeNames(names: readonly string[], addresses: readonly string[]): Buffer[] {
  const unzoned = addresses.map((address) => address.replace(/%.*$/, ''));
  return [
    ...[...new Set(names)].map((name) => implicit(2, Buffer.from(name))),
    ...[...new Set(unzoned)].map((address) => implicit(7, addressBytes(address))),
  ];
}

function spki(key: KeyObject): Buffer {
  return key.export({ type: 'spki', format: 'der' });
}

function exported(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Authority, Leaf, LeafRequest } from './certificates.ts';

const KEY = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Before any hub was born: a hub may boot with a clock in the past, and its appliances with it. */
const NOT_BEFORE = new Date('2000-01-01T00:00:00Z');

/** RFC 5280 section 4.1.2.5: "no well-defined expiration date". */
const END_OF_TIME = new Date('9999-12-31T23:59:59Z');

/** No hub of this version runs earlier, whatever its clock says: a leaf issued in "1970" would be dead on arrival. */
const EARLIEST_ISSUE = Date.UTC(2026, 0, 1);

const LEAF_YEARS = 10;

/**
 * Makes a private CA (P-256, valid from 2000 to 9999) that may issue leaves and nothing below them. The profile is RFC
 * 5280's, so that strict verifiers take it.
 * @param owner whose it is, for people who look at it
 */
export async function createAuthority(owner = 'Latchkey hub'): Promise<Authority> {
  const keys = await createKeys();
  const serialNumber = createSerial();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber,
    // A name of its own: verifiers that know several hubs' CAs look an issuer up by its name.
    name: [{ CN: [`${owner} CA ${serialNumber.slice(0, 8)}`] }],
    notBefore: NOT_BEFORE,
    notAfter: END_OF_TIME,
    signingAlgorithm: KEY,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: pem(certificate), key: await exportKey(keys.privateKey) };
}

/**
 * Issues a server certificate (P-256, from 2000 to ten years after `now`) with a fresh key.
 * @throws Error where the authority's PEM is damaged, or an address is none
 */
export async function issueLeaf(
  authority: Authority,
  { names, addresses, now, owner = 'Latchkey hub' }: LeafRequest,
): Promise<Leaf> {
  const keys = await createKeys();
  const issuer = new X509Certificate(authority.certificate);
  const notAfter = leafEnd(now);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: createSerial(),
    subject: [{ CN: [owner] }],
    issuer: issuer.subjectName.toJSON(),
    notBefore: NOT_BEFORE,
    notAfter,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: KEY,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(alternativeNames(names, addresses)),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey, false),
    ],
  });
  return {
    certificate: pem(certificate) + pem(issuer),
    key: await exportKey(keys.privateKey),
    notAfter: notAfter.getTime(),
  };
}

function createKeys() {
  return crypto.subtle.generateKey(KEY, true, ['sign', 'verify']);
}

/** 126 random bits below a fixed one: a positive INTEGER of at most 20 octets (RFC 5280 section 4.1.2.2). */
function createSerial(): string {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  return serial.toString('hex');
}

function leafEnd(now: number): Date {
  const end = new Date(Math.max(now, EARLIEST_ISSUE));
  end.setUTCFullYear(end.getUTCFullYear() + LEAF_YEARS);
  end.setUTCMilliseconds(0); // what the certificate can say
  return end < END_OF_TIME ? end : END_OF_TIME;
}

function alternativeNames(names: readonly string[], addresses: readonly string[]): JsonGeneralName[] {
  const unzoned = addresses.map((address) => address.replace(/%.*$/, ''));
  return [
    ...[...new Set(names)].map((value): JsonGeneralName => ({ type: 'dns', value })),
    ...[...new Set(unzoned)].map((value): JsonGeneralName => ({ type: 'ip', value })),
  ];
}

function pem(certificate: X509Certificate): string {
  return `${certificate.toString('pem')}\n`;
}

async function exportKey(key: Awaited<ReturnType<typeof importKey>>): Promise<string> {
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', key);
  return `${PemConverter.encode(pkcs8, PemConverter.PrivateKeyTag)}\n`;
}

function importKey(key: string) {
  return crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(key), KEY, false, ['sign']);
}

import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import { AsnConvert } from '@peculiar/asn1-schema';
import {
  GeneralName,
  GeneralSubtree,
  GeneralSubtrees,
  id_ce_nameConstraints,
  NameConstraints,
} from '@peculiar/asn1-x509';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Authority, IssueLeafResult, LeafRequest, PermittedNames, SuccessorAuthority } from './certificates.ts';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Long ago, so that a certificate is valid on a hub or an appliance whose clock is years behind after a boot. */
const NOT_BEFORE = new Date('2000-01-01T00:00:00Z');

/** RFC 5280 section 4.1.2.5: "no well-defined expiration date". */
const NO_EXPIRATION = new Date('9999-12-31T23:59:59Z');

/** A clock before this time is wrong. A leaf issued by a clock in 1970 would already have expired. */
const EARLIEST_ISSUE = Date.UTC(2026, 0, 1);

const LEAF_LIFETIME_YEARS = 10;

/**
 * At most one intermediate CA, for the cross certificate of a successor ({@link createSuccessorAuthority}). Unlike RFC
 * 5280 section 6.1.4 (l), Go, GnuTLS and Mbed TLS count it even if both CAs have the same name.
 */
const PATH_LENGTH = 1;

/**
 * Creates a private CA (P-256, valid from 2000 to 9999) with the profile of RFC 5280, so that strict verifiers accept
 * it.
 * @param owner the owner in the CA's name, for people
 * @param permitted what it may issue certificates for; everything if left out
 */
export async function createAuthority(owner = 'Latchkey hub', permitted?: PermittedNames): Promise<Authority> {
  return (await createRoot(owner, permitted)).authority;
}

/**
 * Creates a CA that replaces another one. While its leaves are served with {@link SuccessorAuthority.crossCertificate},
 * clients that trust either CA can verify them.
 * @throws Error if the old authority's PEM is damaged
 */
export async function createSuccessorAuthority(
  old: Authority,
  permitted: PermittedNames,
  owner = 'Latchkey hub',
): Promise<SuccessorAuthority> {
  const oldCertificate = new X509Certificate(old.certificate);
  const { authority, keys, certificate } = await createRoot(owner, permitted);
  const cross = await X509CertificateGenerator.create({
    serialNumber: createSerial(),
    subject: certificate.subjectName.toJSON(),
    issuer: oldCertificate.subjectName.toJSON(),
    notBefore: NOT_BEFORE,
    notAfter: NO_EXPIRATION,
    publicKey: keys.publicKey,
    signingKey: await importKey(old.key),
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [
      // A TLS client in use crashes on networks in an intermediate certificate. Both CAs have theirs all the same.
      ...(await authorityExtensions(keys.publicKey, 0, { ...permitted, networks: [] })),
      await AuthorityKeyIdentifierExtension.create(oldCertificate.publicKey, false),
    ],
  });
  return { authority, crossCertificate: pem(cross) };
}

async function createRoot(owner: string, permitted: PermittedNames | undefined) {
  const keys = await createKeyPair();
  const serialNumber = createSerial();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber,
    // A unique name, because verifiers that trust the CAs of several hubs look up an issuer by its name.
    name: [{ CN: [`${owner} CA ${serialNumber.slice(0, 8)}`] }],
    notBefore: NOT_BEFORE,
    notAfter: NO_EXPIRATION,
    signingAlgorithm: KEY_ALGORITHM,
    keys,
    extensions: await authorityExtensions(keys.publicKey, PATH_LENGTH, permitted),
  });
  const authority = { certificate: pem(certificate), key: await exportKey(keys.privateKey) };
  return { authority, keys, certificate };
}

async function authorityExtensions(
  key: KeyPair['publicKey'],
  pathLength: number,
  permitted: PermittedNames | undefined,
) {
  return [
    new BasicConstraintsExtension(true, pathLength, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    ...(permitted === undefined ? [] : [nameConstraints(permitted)]),
    await SubjectKeyIdentifierExtension.create(key),
  ];
}

/**
 * Issues a server certificate (P-256, from 2000 to ten years after `now`) with a new key. It leaves out names that the
 * name constraints of a CA in the chain do not permit: one such name would make verifiers reject the certificate.
 * @throws Error if the authority's PEM is damaged, or an address is invalid
 */
export async function issueLeaf(
  authority: Authority,
  { names, addresses, now, owner = 'Latchkey hub', chain }: LeafRequest,
): Promise<IssueLeafResult> {
  const keys = await createKeyPair();
  const issuer = new X509Certificate(authority.certificate);
  const authorities =
    chain === undefined ? [issuer] : PemConverter.decode(chain).map((der) => new X509Certificate(der));
  const { permitted, skipped } = partitionPermitted(subjectAlternativeNames(names, addresses), [
    issuer,
    ...authorities,
  ]);
  const notAfter = leafNotAfter(now);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: createSerial(),
    subject: [{ CN: [owner] }],
    issuer: issuer.subjectName.toJSON(),
    notBefore: NOT_BEFORE,
    notAfter,
    publicKey: keys.publicKey,
    signingKey: await importKey(authority.key),
    signingAlgorithm: KEY_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(permitted),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey, false),
    ],
  });
  return {
    certificate: [certificate, ...authorities].map(pem).join(''),
    key: await exportKey(keys.privateKey),
    notAfter: notAfter.getTime(),
    omitted: skipped,
  };
}

function partitionPermitted(names: readonly JsonGeneralName[], authorities: readonly X509Certificate[]) {
  const permissions = authorities.map(readNameConstraints);
  const isPermitted = ({ type, value }: JsonGeneralName) =>
    permissions.every((permission) =>
      type === 'dns' ? permission.permitsName(value) : permission.permitsAddress(value),
    );
  const { permitted = [], skipped = [] } = Object.groupBy(names, (name) =>
    isPermitted(name) ? 'permitted' : 'skipped',
  );
  return { permitted, skipped: skipped.map(({ value }) => value) };
}

type KeyPair = Awaited<ReturnType<typeof createKeyPair>>;

function createKeyPair() {
  return crypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
}

/** 126 random bits after a fixed one bit: a positive INTEGER of at most 20 octets (RFC 5280 section 4.1.2.2). */
function createSerial(): string {
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  return serial.toString('hex');
}

function leafNotAfter(now: number): Date {
  const end = new Date(Math.max(now, EARLIEST_ISSUE));
  end.setUTCFullYear(end.getUTCFullYear() + LEAF_LIFETIME_YEARS);
  end.setUTCMilliseconds(0); // certificates have whole seconds
  return end < NO_EXPIRATION ? end : NO_EXPIRATION;
}

function subjectAlternativeNames(names: readonly string[], addresses: readonly string[]): JsonGeneralName[] {
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
  return crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(key), KEY_ALGORITHM, false, ['sign']);
}

/**
 * The name constraints extension of a CA certificate (RFC 5280 section 4.2.1.10). It is not critical, because Mbed TLS
 * (2.28) rejects unknown critical extensions, and verifiers that know the extension apply it in any case.
 */
function nameConstraints({ names, networks }: PermittedNames): Extension {
  const bases = [...names.map((dNSName) => ({ dNSName })), ...networks.map((iPAddress) => ({ iPAddress }))];
  const subtrees = bases.map((base) => new GeneralSubtree({ base: new GeneralName(base) }));
  const constraints = new NameConstraints({ permittedSubtrees: new GeneralSubtrees(subtrees) });
  return new Extension(id_ce_nameConstraints, false, AsnConvert.serialize(constraints));
}

/** Checks whether a CA permits a name or an IP address in certificates below it. */
interface NameConstraintChecker {
  permitsName(name: string): boolean;
  permitsAddress(address: string): boolean;
}

/**
 * Reads the name constraints of a CA certificate. Without any of a kind, everything of that kind is permitted. Supports
 * only constraints as {@link nameConstraints} creates them: permitted DNS names and networks.
 */
function readNameConstraints(authority: X509Certificate): NameConstraintChecker {
  const extension = authority.getExtension(id_ce_nameConstraints);
  if (extension === null) return { permitsName: () => true, permitsAddress: () => true };
  const { permittedSubtrees = [] } = AsnConvert.parse(extension.value, NameConstraints);
  const names: string[] = [];
  const networks = new BlockList();
  let hasNetworks = false;
  for (const { base } of permittedSubtrees) {
    if (base.dNSName !== undefined) names.push(base.dNSName);
    const [address, bits] = base.iPAddress?.split('/') ?? [];
    if (address === undefined) continue;
    networks.addSubnet(address, Number(bits), addressFamily(address));
    hasNetworks = true;
  }
  return {
    permitsName: (name) => names.length === 0 || names.some((base) => name === base || name.endsWith(`.${base}`)),
    permitsAddress: (address) => !hasNetworks || networks.check(address, addressFamily(address)),
  };
}

function addressFamily(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { readBoundedFile, unreadableFileMessage } from '../system/bounded-file.ts';
import { missingFileMessage, readProtectedFile, readSystemdCredential } from '../system/secret-file.ts';
import { spkiFingerprint, type ValidityPeriod } from '../system/x509/certificates.ts';

/** Largest size of either file, in bytes. */
const MAX_FILE_BYTES = 262_144;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Where the owner's own certificate is. */
export interface CertificateFiles {
  /** Paths, or names of systemd credentials. */
  readonly certificate: string;
  readonly key: string;
  /** The directory that relative paths start from. */
  readonly directory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentials: string | undefined;
}

/** A problem with the files. Its message is shown after the name of the key in the configuration's `lan`. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
  readonly key: 'certificate_file' | 'key_file';

  constructor(key: 'certificate_file' | 'key_file', message: string) {
    super(message);
    this.key = key;
  }
}

/**
 * Reads the owner's own certificate (the leaf, then its chain) and its private key. Appliances pin the last certificate
 * of the file. If the file contains a chain, that certificate stays when the leaf is renewed.
 * @throws CertificateError
 */
export async function readCustomCertificate(files: CertificateFiles): Promise<ServedCertificate> {
  const path = resolve(files.directory, files.certificate);
  const { directory, credentials } = files;
  const fromSystemd = await readSystemdCredential(files.certificate, credentials, MAX_FILE_BYTES);
  const fromFile = (error: Error) => {
    const isMissing = 'code' in error && error.code === 'ENOENT';
    const what = isMissing ? missingFileMessage(directory, credentials) : unreadableFileMessage(path, error);
    throw new CertificateError('certificate_file', what);
  };
  const text = fromSystemd ?? (await readBoundedFile(path, MAX_FILE_BYTES).catch(fromFile));
  const [leaf, ...issuers] = parseChain(text, path);
  const key = await readProtectedFile(files.key, directory, credentials).catch((error: Error) => {
    throw new CertificateError('key_file', error.message);
  });
  checkKeyMatches(leaf, key.text, key.path);
  const chain = [leaf, ...issuers];
  const certificate = chain.map((one) => one.toString()).join('');
  try {
    createSecureContext({ cert: certificate, key: key.text });
  } catch (error) {
    throw new CertificateError('certificate_file', `${path} can't be used for TLS (${messageOf(error)})`);
  }
  const anchor = chain.at(-1) ?? leaf;
  return {
    pem: { certificate, key: key.text },
    names: dnsNamesOf(leaf),
    anchor: { certificate: anchor.toString(), fingerprint: spkiFingerprint(anchor.toString()) },
    notBefore: leaf.validFromDate.getTime(),
    notAfter: leaf.validToDate.getTime(),
  };
}

function parseChain(text: string, path: string): [X509Certificate, ...X509Certificate[]] {
  let chain: X509Certificate[];
  try {
    chain = [...text.matchAll(PEM_CERTIFICATE)].map(([block]) => new X509Certificate(block));
  } catch {
    throw new CertificateError('certificate_file', `${path} contains a damaged PEM certificate`);
  }
  const [leaf, ...issuers] = chain;
  if (leaf === undefined) {
    throw new CertificateError('certificate_file', `${path} contains no PEM certificate`);
  }
  const wrong = issuers.findIndex((issuer, index) => chain[index]?.checkIssued(issuer) !== true);
  if (wrong !== -1 || (leaf.ca && issuers.length > 0)) {
    const order = 'the file must contain the certificate of the hub first, then its issuer, and so on';
    const found =
      wrong === -1
        ? 'certificate 1 is a CA certificate'
        : `certificate ${wrong + 2} is not the issuer of certificate ${wrong + 1}`;
    throw new CertificateError('certificate_file', `${path}: ${found}; ${order}`);
  }
  return [leaf, ...issuers];
}

function checkKeyMatches(leaf: X509Certificate, pem: string, path: string): void {
  let belongs: boolean;
  try {
    belongs = leaf.checkPrivateKey(createPrivateKey(pem));
  } catch {
    throw new CertificateError(
      'key_file',
      `${path} contains no readable private key; it must be an unencrypted PEM key`,
    );
  }
  if (!belongs) throw new CertificateError('key_file', `the key in ${path} does not match the certificate`);
}

/** The DNS names of the certificate's SAN, in lower case. */
function dnsNamesOf({ subjectAltName }: X509Certificate): string[] {
  const names = (subjectAltName ?? '').split(', ').filter((name) => name.startsWith('DNS:'));
  return names.map((name) => name.slice('DNS:'.length).toLowerCase());
}

/** The certificate that appliances pin. */
export interface TrustAnchor {
  /** PEM. */
  readonly certificate: string;
  /** Its pin: base64url SHA-256 of its public key. */
  readonly fingerprint: string;
}

/** The certificate that the hub presents in TLS handshakes, and the time in which its leaf is valid. */
export interface ServedCertificate extends ValidityPeriod {
  /** The leaf followed by its chain to the anchor, and the leaf's private key; both PEM. */
  readonly pem: { readonly certificate: string; readonly key: string };
  /** Its DNS names, in lower case; `*.` matches one label (RFC 9525, 6.3). */
  readonly names: readonly string[];
  readonly anchor: TrustAnchor;
}

const PEM_HEADER = /-----BEGIN CERTIFICATE-----/g;

/**
 * Logs warnings about the owner's own certificate that concern appliances; the hub uses the certificate anyway. Expiry
 * is checked by the machine's own clock, because the confirmed clock may not be available for a long time.
 */
export function warnAboutCertificate(shown: ServedCertificate, clock: Clock, log: Log): void {
  const { anchor, notAfter, pem } = shown;
  if (pem.certificate.match(PEM_HEADER)?.length === 1) {
    log.warn('certificate_chain_missing', {
      what_to_do: isSelfSigned(anchor.certificate)
        ? 'keep the same key when you renew the certificate: appliances pin that key'
        : 'append the certificate of the issuer, with the root last: otherwise the pin changes whenever the key of the certificate changes',
    });
  } else if (!isSelfSigned(anchor.certificate)) {
    log.warn('certificate_root_missing', {
      what_to_do: 'append the root certificate at the end: Node, and Python before 3.13, trust only a root',
    });
  }
  if (notAfter < clock.now().wall) {
    log.warn('certificate_expired', { expires_at: new Date(notAfter).toISOString(), clock_confirmed: false });
  }
}

function isSelfSigned(pem: string): boolean {
  const certificate = new X509Certificate(pem);
  return certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey);
}

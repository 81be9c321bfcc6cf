import { createPrivateKey, X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { readBoundedFile } from '../system/bounded-file.ts';
import { missingFileMessage, readProtectedFile, readSystemdCredential } from '../system/secret-file.ts';
import { spkiFingerprint } from '../system/x509/certificates.ts';

/** Bytes of either file. */
const MAX_FILE_BYTES = 262_144;
const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Where the user's own certificate is. */
export interface CertificateFiles {
  /** Paths, or names of systemd credentials. */
  readonly certificate: string;
  readonly key: string;
  /** What relative paths begin at. */
  readonly directory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentials: string | undefined;
}

/** What is wrong with the files, in words that fit behind the name of the key in the configuration's `lan`. */
export class CertificateError extends Error {
  override readonly name = 'CertificateFault';
  readonly key: 'certificate_file' | 'key_file';

  constructor(key: 'certificate_file' | 'key_file', message: string) {
    super(message);
    this.key = key;
  }
}

/**
 * Reads the user's own certificate, the leaf first and its chain behind it, and the key that belongs to it. Appliances pin
 * the last certificate of the file: the one that stays when the leaf is renewed, where there is such a one.
 * @throws CertificateError
 */
export async function readCustomCertificate(files: CertificateFiles): Promise<ServedCertificate> {
  const path = resolve(files.directory, files.certificate);
  const { directory, credentials } = files;
  const fromSystemd = await readSystemdCredential(files.certificate, credentials, MAX_FILE_BYTES);
  const fromFile = (error: Error) => {
    const isMissing = 'code' in error && error.code === 'ENOENT';
    const what = isMissing ? missingFileMessage(directory, credentials) : `${path} can't be read (${error.message})`;
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
    throw new CertificateError('certificate_file', `${path} is not fit for TLS (${messageOf(error)})`);
  }
  const anchor = chain.at(-1) ?? leaf;
  return {
    pem: { certificate, key: key.text },
    names: dnsNamesOf(leaf),
    anchor: { certificate: anchor.toString(), fingerprint: spkiFingerprint(anchor.toString()) },
    notAfter: leaf.validToDate.getTime(),
  };
}

function parseChain(text: string, path: string): [X509Certificate, ...X509Certificate[]] {
  let chain: X509Certificate[];
  try {
    chain = [...text.matchAll(PEM_CERTIFICATE)].map(([block]) => new X509Certificate(block));
  } catch {
    throw new CertificateError('certificate_file', `${path} holds a PEM certificate that is damaged`);
  }
  const [leaf, ...issuers] = chain;
  if (leaf === undefined) {
    throw new CertificateError('certificate_file', `${path} holds no PEM certificate`);
  }
  const wrong = issuers.findIndex((issuer, index) => chain[index]?.checkIssued(issuer) !== true);
  if (wrong !== -1 || (leaf.ca && issuers.length > 0)) {
    const order = 'allowed is the certificate of the hub first, then the one that issued it, and so on';
    const found = wrong === -1 ? 'certificate 1 of a CA' : `certificate ${wrong + 2} did not issue the one before it`;
    throw new CertificateError('certificate_file', `${path}: found ${found}; ${order}`);
  }
  return [leaf, ...issuers];
}

function checkKeyMatches(leaf: X509Certificate, pem: string, path: string): void {
  let belongs: boolean;
  try {
    belongs = leaf.checkPrivateKey(createPrivateKey(pem));
  } catch {
    const allowed = 'allowed is one as PEM, not encrypted';
    throw new CertificateError('key_file', `${path} holds no private key that can be read; ${allowed}`);
  }
  if (!belongs) throw new CertificateError('key_file', `${path} holds a key that the certificate is not for`);
}

/** The DNS names of its SAN, in lower case. */
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

/** What the hub shows in a TLS handshake. */
export interface ServedCertificate {
  /** The leaf, then what leads to its anchor; and the leaf's key. */
  readonly pem: { readonly certificate: string; readonly key: string };
  /** The DNS names that it is for, in lower case; `*.` stands for one label (RFC 9525, 6.3). */
  readonly names: readonly string[];
  readonly anchor: TrustAnchor;
  /** When it ends, in ms since 1970. */
  readonly notAfter: number;
}

const PEM_HEADER = /-----BEGIN CERTIFICATE-----/g;

/**
 * Says what appliances will stumble over with the user's own certificate, which the hub shows all the same. Its end is
 * judged by the machine's own clock: the true time may not be known for long.
 */
export function warnAboutCertificate(shown: ServedCertificate, clock: Clock, log: Log): void {
  const { anchor, notAfter, pem } = shown;
  if (pem.certificate.match(PEM_HEADER)?.length === 1) {
    log.warn('certificate_chain_missing', {
      what_to_do: isSelfSigned(anchor.certificate)
        ? 'keep its key when you renew it: that is what appliances pin'
        : 'put the certificate that issued it behind it, the root last: else the pin changes with its key',
    });
  } else if (!isSelfSigned(anchor.certificate)) {
    log.warn('certificate_root_missing', {
      what_to_do: 'put the root last: Node, and Python before 3.13, trust nothing less',
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

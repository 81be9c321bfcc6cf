import { createHash, X509Certificate } from 'node:crypto';

/** The hub's private certificate authority. */
export interface Authority {
  /** The CA certificate, PEM. Public: this is what appliances pin. */
  readonly certificate: string;
  /** Its private key, PKCS#8 PEM. Secret: the store must seal it. */
  readonly key: string;
}

/** The name constraints of a CA (RFC 5280 section 4.2.1.10): what it may issue certificates for. */
export interface PermittedNames {
  /** DNS names in ASCII and lower case; each permits all its subdomains. */
  readonly names: readonly string[];
  /** IP networks in CIDR notation. */
  readonly networks: readonly string[];
}

/** A CA that replaces another one. */
export interface SuccessorAuthority {
  readonly authority: Authority;
  /**
   * The new CA's public key, certified by the old CA, PEM: it chains a leaf certificate of the new CA to the old CA.
   * Nothing else needs the old CA's private key.
   */
  readonly crossCertificate: string;
}

/** The input for a leaf certificate. */
export interface LeafRequest {
  /** DNS names for the SAN, in ASCII. */
  readonly names: readonly string[];
  /** IPv4 and IPv6 addresses for the SAN. An IPv6 zone (`%eth0`) is removed, because it has no meaning for a peer. */
  readonly addresses: readonly string[];
  /** Milliseconds since 1970 by the wall clock, right or wrong. */
  readonly now: number;
  /** The owner in the subject, for people. Default: `Latchkey hub`. */
  readonly owner?: string;
  /**
   * The chain after the leaf, instead of its CA, PEM: a {@link SuccessorAuthority.crossCertificate} and the CA that
   * issued it.
   */
  readonly chain?: string;
}

/** A server certificate that an {@link Authority} issued. */
export interface Leaf {
  /** The leaf, then its CA or chain, PEM: a peer that knows only the pin finds the pinned key in the handshake. */
  readonly certificate: string;
  /** Its private key, PKCS#8 PEM. */
  readonly key: string;
  /** When it expires, in milliseconds since 1970. */
  readonly notAfter: number;
}

/** A newly issued leaf. */
export interface IssueLeafResult extends Leaf {
  /**
   * Requested names and addresses that it is not valid for, because the name constraints of a CA in its chain do not
   * permit them.
   */
  readonly omitted: readonly string[];
}

/** The time in which a certificate is valid, in ms since 1970. */
export interface ValidityPeriod {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** How long before it expires a certificate should have been renewed at the latest, in ms. */
const MAX_EXPIRY_WARNING = 14 * 86_400_000;

/**
 * From when on a certificate that a person or a program has to renew counts as expiring, in ms since 1970: two weeks
 * before it expires, or a sixth of its lifetime if that is less. ACME clients renew when a third is left.
 */
export function expiryWarningTime({ notBefore, notAfter }: ValidityPeriod): number {
  return notAfter - Math.min(MAX_EXPIRY_WARNING, (notAfter - notBefore) / 6);
}

/**
 * A certificate's pin: base64url SHA-256 of its SubjectPublicKeyInfo (RFC 7469 section 2.4).
 * @param certificate PEM; the first certificate, if there are several
 * @throws Error if it is not a certificate
 */
export function spkiFingerprint(certificate: string): string {
  const spki = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64url');
}

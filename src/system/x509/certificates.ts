import { createHash, X509Certificate } from 'node:crypto';

/** The hub's private certificate authority. */
export interface Authority {
  /** The CA certificate, PEM. Public: this is what appliances pin. */
  readonly certificate: string;
  /** Its private key, PKCS#8 PEM. A secret: to be sealed where it is stored. */
  readonly key: string;
}

/** What a CA may issue certificates for (RFC 5280 section 4.2.1.10). */
export interface PermittedNames {
  /** DNS names in ASCII and lower case, each with all names below it. */
  readonly names: readonly string[];
  /** IP networks in CIDR notation. */
  readonly networks: readonly string[];
}

/** A CA that takes another one's place. */
export interface SuccessorAuthority {
  readonly authority: Authority;
  /**
   * Its public key, certified by the CA before it, PEM: it leads from a leaf of the new CA to the old one. Nothing else
   * needs the old CA's private key.
   */
  readonly crossCertificate: string;
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
  /** What goes behind the leaf in place of its CA, PEM: a {@link SuccessorAuthority.crossCertificate} and the CA that it leads to. */
  readonly chain?: string;
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

/** A leaf that was issued just now. */
export interface IssueLeafResult extends Leaf {
  /** Names and addresses that it is not for, because a CA above it has name constraints that do not permit them. */
  readonly omitted: readonly string[];
}

/**
 * A certificate's pin: base64url SHA-256 of its SubjectPublicKeyInfo, what RFC 7469 section 2.4 pins.
 * @param certificate PEM; of several certificates the first one counts
 * @throws Error where it is no certificate
 */
export function spkiFingerprint(certificate: string): string {
  const spki = new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(spki).digest('base64url');
}

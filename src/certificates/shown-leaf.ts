/** The certificate that appliances pin. */
export interface Anchor {
  /** PEM. */
  readonly certificate: string;
  /** Its pin: base64url SHA-256 of its public key. */
  readonly fingerprint: string;
}

/** What the hub shows in a TLS handshake. */
export interface ShownLeaf {
  /** The leaf, then what leads to its anchor; and the leaf's key. */
  readonly pem: { readonly certificate: string; readonly key: string };
  /** The DNS names that it is for, in lower case; `*.` stands for one label (RFC 9525, 6.3). */
  readonly names: readonly string[];
  readonly anchor: Anchor;
  /** When it ends, in ms since 1970. */
  readonly notAfter: number;
}

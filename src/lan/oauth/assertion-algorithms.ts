/** How an assertion may be signed: with a private key, and never with a secret that the hub would have to know. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const;

export type AssertionAlgorithm = (typeof ASSERTION_ALGORITHMS)[number];

export function isOffered(algorithm: string): algorithm is AssertionAlgorithm {
  return (ASSERTION_ALGORITHMS as readonly string[]).includes(algorithm);
}

import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { type CryptoKey, importJWK, type JWK, jwtVerify } from 'jose';

/** How an assertion may be signed: with a private key, and never with a secret that the hub would have to know. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'Ed25519', 'PS256', 'RS256'] as const;

export type AssertionAlgorithm = (typeof ASSERTION_ALGORITHMS)[number];

export function isOffered(algorithm: string): algorithm is AssertionAlgorithm {
  return (ASSERTION_ALGORITHMS as readonly string[]).includes(algorithm);
}

/** Bytes of an RSA modulus. */
const MODULUS = 256;

/**
 * Keys of nobody. An assertion for which there is no key is checked with one of these, in vain, so that the time does not tell
 * which appliances there are.
 */
export class DummyKeys {
  readonly #imported = new Map<AssertionAlgorithm, Promise<CryptoKey | Uint8Array>>();

  /** Takes as long as for a known key. */
  async verify(assertion: string, algorithm: AssertionAlgorithm): Promise<void> {
    const key = this.#imported.get(algorithm) ?? importJWK(keyFor(algorithm), algorithm);
    this.#imported.set(algorithm, key);
    await jwtVerify(assertion, await key).catch(() => undefined);
  }
}

function keyFor(algorithm: AssertionAlgorithm): JWK {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
    case 'EdDSA':
    case 'Ed25519':
      return generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
    case 'PS256':
    case 'RS256':
      return { kty: 'RSA', e: 'AQAB', n: modulus().toString('base64url') };
  }
}

/** To make two primes takes seconds on a small machine, and what checks a signature never looks for them. */
function modulus(): Buffer {
  const bytes = randomBytes(MODULUS);
  bytes.writeUInt8(bytes.readUInt8(0) | 0x80, 0);
  bytes.writeUInt8(bytes.readUInt8(MODULUS - 1) | 0x01, MODULUS - 1);
  return bytes;
}

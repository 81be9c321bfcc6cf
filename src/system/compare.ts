import { hash, timingSafeEqual } from 'node:crypto';

/** Compares two secrets in a time that tells nothing of either, nor of their lengths. */
export function sameSecret(a: string, b: string): boolean {
  // As text: hashes that are made as buffers take three times as long.
  return timingSafeEqual(Buffer.from(sha256(a)), Buffer.from(sha256(b)));
}

/** As long as every hash, and none: the last digit of one has two bits to spare, which are zero. */
const NO_HASH = '-'.repeat(43);

/**
 * Whether a secret is the one with this SHA-256, see {@link sha256}. Takes as long where there is none, and tells nothing of it.
 * @param hash null for none
 */
export function isSecretOf(secret: string, hash: string | null): boolean {
  const expected = hash?.length === NO_HASH.length ? hash : NO_HASH;
  return timingSafeEqual(Buffer.from(sha256(secret)), Buffer.from(expected));
}

/** The SHA-256 of a text, base64url. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}

import { createHmac, hash, timingSafeEqual } from 'node:crypto';

/** Compares two secrets in a time that tells nothing of either, nor of their lengths. */
export function timingSafeEqualText(a: string, b: string): boolean {
  return isSameHash(sha256(a), sha256(b));
}

/** As long as every hash, and none: the last digit of one has two bits to spare, which are zero. */
const NO_HASH = '-'.repeat(43);

/**
 * Whether a secret is the one with this SHA-256, see {@link sha256}. Takes as long where there is none, and tells nothing of it.
 * @param hash null for none
 */
export function verifySecretHash(secret: string, hash: string | null): boolean {
  const expected = hash?.length === NO_HASH.length ? hash : NO_HASH;
  return isSameHash(sha256(secret), expected);
}

function isSameHash(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a), Buffer.from(b));
}

/** The SHA-256 of a text, base64url. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** The HMAC of a text under a key (RFC 2104, with SHA-256), base64url. */
export function hmacSha256(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

import { createHmac, hash, timingSafeEqual } from 'node:crypto';

/** Compares two secrets in constant time, whatever their lengths are. */
export function timingSafeEqualText(a: string, b: string): boolean {
  return isSameHash(sha256(a), sha256(b));
}

/**
 * Has the length of a hash, but equals none: the two unused bits of a hash's last base64url digit are zero, and `-` has
 * one of them set.
 */
const NO_HASH = '-'.repeat(43);

/**
 * Whether a secret has this SHA-256, see {@link sha256}. Takes the same time if there is no hash, so that the time
 * reveals nothing.
 * @param hash null for none
 */
export function verifySecretHash(secret: string, hash: string | null): boolean {
  const expected = hash?.length === NO_HASH.length ? hash : NO_HASH;
  return isSameHash(sha256(secret), expected);
}

/**
 * For every comparison: small buffers of each request come from pools that only a collection of the whole heap frees, and
 * other requests wait for that.
 */
const compared = [Buffer.alloc(NO_HASH.length), Buffer.alloc(NO_HASH.length)] as const;

function isSameHash(a: string, b: string): boolean {
  compared[0].write(a, 'latin1');
  compared[1].write(b, 'latin1');
  return timingSafeEqual(...compared);
}

/** The SHA-256 of a text, base64url. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}

/** The HMAC-SHA-256 of a text (RFC 2104), base64url. */
export function hmacSha256(key: string, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

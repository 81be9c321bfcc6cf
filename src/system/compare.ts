import { hash, timingSafeEqual } from 'node:crypto';

/** Compares two secrets in a time that tells nothing of either, nor of their lengths. */
export function sameSecret(a: string, b: string): boolean {
  return timingSafeEqual(hash('sha256', a, 'buffer'), hash('sha256', b, 'buffer'));
}

/** The SHA-256 of a text, base64url. */
export function sha256(text: string): string {
  return hash('sha256', text, 'base64url');
}

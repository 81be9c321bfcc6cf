import { createHash } from 'node:crypto';
import type { Settings } from '../settings/settings.ts';

/** The PKCE parameters of an authorization request (RFC 7636, 4.3): the challenge, or why they are refused. */
export type PkceResult = { readonly challenge: string | null } | { readonly refused: string };

/** A SHA-256, base64url. */
const S256_CHALLENGE = /^[\w-]{43}$/;

/** RFC 7636, 4.1. */
const CODE_VERIFIER = /^[\w.~-]{43,128}$/;

/**
 * Reads `code_challenge` and `code_challenge_method`. Only S256 is supported, so that a client that forgets the method,
 * which means plain, is found.
 */
export function readCodeChallenge(parameters: ReadonlyMap<string, string>, { pkce }: Settings): PkceResult {
  if (pkce === 'ignored') return { challenge: null };
  const challenge = parameters.get('code_challenge');
  const method = parameters.get('code_challenge_method');
  if (challenge === undefined) {
    if (method !== undefined) return { refused: 'code_challenge is missing' };
    return pkce === 'required' ? { refused: 'code_challenge is required' } : { challenge: null };
  }
  if (method !== 'S256') return { refused: 'code_challenge_method must be S256' };
  return S256_CHALLENGE.test(challenge)
    ? { challenge }
    : { refused: 'code_challenge must be a SHA-256 in base64url without padding' };
}

/**
 * Checks `code_verifier` (RFC 7636, 4.6). A verifier without a challenge is refused too (RFC 9700, 4.8.2).
 * @returns why it is refused, or null
 */
export function rejectCodeVerifier(challenge: string | null, verifier: string | undefined, { pkce }: Settings) {
  if (challenge === null) {
    return verifier === undefined || pkce === 'ignored' ? null : 'code_verifier without a code_challenge';
  }
  if (verifier === undefined) return 'code_verifier is missing';
  if (!CODE_VERIFIER.test(verifier)) return 'code_verifier must have 43 to 128 unreserved characters';
  const hash = createHash('sha256').update(verifier).digest('base64url');
  return hash === challenge ? null : 'code_verifier does not match the code_challenge';
}

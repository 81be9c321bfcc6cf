import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';

import { sameSecret } from '../system/compare.ts';

/** What a token says of itself. */
export interface TokenClaims {
  readonly grantId: string;
  /** The how-manieth pair of tokens of its grant it belongs to, from 1. */
  readonly generation: number;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  /** Of the pair's access token, in seconds. */
  readonly lifetime: number;
}

/**
 * Access and refresh tokens that carry their claims under a MAC. So the emulator remembers grants but no tokens, and
 * knows a refresh token again that was used a year and ten thousand generations ago.
 */
export class BearerTokens {
  /** A key object: with bytes Node makes a new one for every MAC, which takes five times as long. */
  readonly #key: KeyObject;

  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  seal(kind: 'access_token' | 'refresh_token', claims: TokenClaims): string {
    const text = `${claims.grantId}.${claims.generation}.${claims.issuedAt}.${claims.lifetime}`;
    return `${text}.${this.#mac(kind, text)}`;
  }

  /** The claims of a token that this emulator sealed as this kind, or null. Expiry and revocation are the grant's. */
  open(kind: 'access_token' | 'refresh_token', token: string): TokenClaims | null {
    const [grantId, generation, issuedAt, lifetime, mac, ...rest] = token.split('.');
    if (grantId === undefined || mac === undefined || rest.length > 0) return null;
    if (!sameSecret(mac, this.#mac(kind, `${grantId}.${generation}.${issuedAt}.${lifetime}`))) return null;
    return { grantId, generation: Number(generation), issuedAt: Number(issuedAt), lifetime: Number(lifetime) };
  }

  #mac(kind: string, text: string): string {
    return createHmac('sha256', this.#key).update(`${kind} ${text}`).digest('base64url');
  }
}

import { hash, timingSafeEqual } from 'node:crypto';

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
  readonly key: string;

  /** @param key a secret text, which outlives the process together with the grants */
  constructor(key: string) {
    this.key = key;
  }

  sign(kind: 'access_token' | 'refresh_token', claims: TokenClaims): string {
    const text = `${claims.grantId}.${claims.generation}.${claims.issuedAt}.${claims.lifetime}`;
    return `${text}.${this.#mac(kind, text)}`;
  }

  /** An ID token (OpenID Connect Core, 2) as far as it tells who has logged in; nobody can check its signature. */
  idToken(client: string, user: string): string {
    const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const text = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded({ aud: client, sub: user, preferred_username: user })}`;
    return `${text}.${this.#mac('id_token', text)}`;
  }

  /** The claims of a token that this emulator sealed as this kind, or null. Expiry and revocation are the grant's. */
  verify(kind: 'access_token' | 'refresh_token', token: string): TokenClaims | null {
    const [grantId, generation, issuedAt, lifetime, mac, ...rest] = token.split('.');
    if (grantId === undefined || mac === undefined || rest.length > 0) return null;
    if (!sameMac(mac, this.#mac(kind, `${grantId}.${generation}.${issuedAt}.${lifetime}`))) return null;
    return { grantId, generation: Number(generation), issuedAt: Number(issuedAt), lifetime: Number(lifetime) };
  }

  /** The key goes around the text, so that none can be appended; the one-shot hash takes a fifth of an HMAC's time. */
  #mac(kind: string, text: string): string {
    return hash('sha256', `${this.key} ${kind} ${text} ${this.key}`, 'base64url');
  }
}

/** Compares in a time that tells nothing of the right one; its length is no secret. */
function sameMac(given: string, right: string): boolean {
  const bytes = Buffer.from(given);
  return bytes.length === right.length && timingSafeEqual(bytes, Buffer.from(right));
}

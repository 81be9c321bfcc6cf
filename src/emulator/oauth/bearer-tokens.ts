import { hash } from 'node:crypto';
import { timingSafeEqualText } from '../../system/secret-hash.ts';

/** The content of a token. */
export interface TokenClaims {
  readonly grantId: string;
  /** The number of its token pair within the grant, from 1. */
  readonly generation: number;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  /** Lifetime of the pair's access token, in seconds. */
  readonly lifetime: number;
  /** The thumbprint of the key that the tokens are bound to (RFC 9449, 6); left out if they are not. */
  readonly jkt?: string | undefined;
  /** The scope of the access token, if a refresh asked for less than that of its grant (RFC 6749, 6); left out otherwise. */
  readonly scope?: string | undefined;
}

/** `jti`: the ID of an access token that is a JWT, which is no token itself. */
type TokenKind = 'access_token' | 'refresh_token' | 'jti';

/**
 * Access and refresh tokens contain their claims and a MAC. So the emulator stores grants but no tokens, and still
 * recognises a refresh token that was used a year and ten thousand generations ago.
 */
export class BearerTokens {
  readonly key: string;

  /** @param key a secret text; the state file keeps it together with the grants */
  constructor(key: string) {
    this.key = key;
  }

  sign(kind: TokenKind, claims: TokenClaims): string {
    const { grantId, generation, issuedAt, lifetime, jkt, scope } = claims;
    const key = jkt === undefined ? [] : [jkt];
    const optional = scope === undefined ? key : [jkt ?? '', Buffer.from(scope).toString('base64url')];
    const text = [grantId, generation, issuedAt, lifetime, ...optional].join('.');
    return `${text}.${this.#mac(kind, text)}`;
  }

  /** The claims of a token that this emulator signed as this kind, or null. It does not check expiry and revocation. */
  verify(kind: TokenKind, token: string): TokenClaims | null {
    const end = token.lastIndexOf('.');
    const text = token.slice(0, end);
    if (end === -1 || !timingSafeEqualText(token.slice(end + 1), this.#mac(kind, text))) return null;
    const [grantId = '', generation, issuedAt, lifetime, jkt = '', encodedScope = ''] = text.split('.');
    const scope = Buffer.from(encodedScope, 'base64url').toString();
    const numbers = { generation: Number(generation), issuedAt: Number(issuedAt), lifetime: Number(lifetime) };
    return { grantId, ...numbers, ...(jkt !== '' && { jkt }), ...(scope !== '' && { scope }) };
  }

  /** The key encloses the text, which prevents length extension. A one-shot hash takes a fifth of an HMAC's time. */
  #mac(kind: TokenKind, text: string): string {
    return hash('sha256', `${this.key} ${kind} ${text} ${this.key}`, 'base64url');
  }
}

import { createHmac } from 'node:crypto';

/** The claims of an ID token (OpenID Connect Core, 2). */
export interface IdTokenClaims {
  /** The frontend origin. */
  readonly iss: string;
  /** The user's name. */
  readonly sub: string;
  /** The client's ID. */
  readonly aud: string;
  /** Seconds since 1970. */
  readonly iat: number;
  /** Seconds since 1970. */
  readonly exp: number;
  /** The user's name. */
  readonly preferred_username: string;
}

/**
 * An ID token that its client can verify: a JWT, signed with HS256 and the client's secret (OpenID Connect Core, 10.1).
 * It does not use jose, because that signs asynchronously, and the token endpoint decides synchronously.
 */
export function createIdToken(claims: IdTokenClaims, clientSecret: string): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
  return `${text}.${createHmac('sha256', clientSecret).update(text).digest('base64url')}`;
}

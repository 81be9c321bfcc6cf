import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** The claims of an ID token (OpenID Connect Core, 2). */
interface IdTokenClaims {
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
  const text = signingInput({ alg: 'HS256', typ: 'JWT' }, claims);
  return `${text}.${createHmac('sha256', clientSecret).update(text).digest('base64url')}`;
}

/**
 * The key that signs the ID tokens of `/oauth2/` with ES256, because its clients may have no secret. It is generated when
 * it is first needed.
 */
export class IdTokenKey {
  #key: KeyObject | null;

  /** @param pem a former value of {@link pem}, from the state file */
  constructor(pem: string | undefined) {
    this.#key = pem === undefined ? null : createPrivateKey(pem);
  }

  /** The private key, PEM; null before its first use. */
  get pem(): string | null {
    return this.#key?.export({ type: 'pkcs8', format: 'pem' }).toString() ?? null;
  }

  sign(claims: IdTokenClaims): string {
    const text = signingInput({ alg: 'ES256', typ: 'JWT', kid: KEY_ID }, claims);
    // RFC 7518, 3.4: both numbers without DER.
    const signature = sign('sha256', Buffer.from(text), { key: this.#getOrCreate(), dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  /** The public key as a JWK Set (RFC 7517, 5). */
  jwks(): object {
    const jwk = createPublicKey(this.#getOrCreate()).export({ format: 'jwk' });
    return { keys: [{ ...jwk, kid: KEY_ID, alg: 'ES256', use: 'sig' }] };
  }

  /** Replaces the key, which invalidates every ID token. */
  rotate(): void {
    this.#key = null;
  }

  #getOrCreate(): KeyObject {
    this.#key ??= generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    return this.#key;
  }
}

const KEY_ID = 'id-token';

/** RFC 7515, 5.1. */
function signingInput(header: object, claims: IdTokenClaims): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode(header)}.${encode(claims)}`;
}

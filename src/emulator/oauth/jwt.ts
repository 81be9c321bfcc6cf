import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';

/** The claims of a JWT: those of an ID token (OpenID Connect Core, 2) or of an access token (RFC 9068, 2.2). */
export interface JwtClaims {
  /** The frontend origin. */
  readonly iss: string;
  /** The user's name; the client's ID if there is no user. */
  readonly sub: string;
  readonly aud: string | readonly string[];
  /** Seconds since 1970. */
  readonly iat: number;
  /** Seconds since 1970. */
  readonly exp: number;
  readonly [name: string]: unknown;
}

/**
 * An ID token that its client can verify: a JWT, signed with HS256 and the client's secret (OpenID Connect Core, 10.1).
 * It does not use jose, because that signs asynchronously, and the token endpoint decides synchronously.
 */
export function createIdToken(claims: JwtClaims, clientSecret: string): string {
  const text = signingInput({ alg: 'HS256', typ: 'JWT' }, claims);
  return `${text}.${createHmac('sha256', clientSecret).update(text).digest('base64url')}`;
}

/** The claim `at_hash` of an ID token that is signed with a SHA-256 algorithm (OpenID Connect Core, 3.1.3.6). */
export function accessTokenHash(accessToken: string): string {
  return hash('sha256', accessToken, 'buffer').subarray(0, 16).toString('base64url');
}

/** The media type of an ID token or an access token, without `application/` (RFC 7515, 4.1.9). */
type JwtType = 'JWT' | 'at+jwt';

/**
 * The key that signs the JWTs of `/oauth2/`. Every client knows RS256 (OpenID Connect Core, 15.1), and it signs the same
 * claims alike, so that a token that is issued again is the same token. The key is generated when it is first needed.
 */
export class SigningKey {
  /** `id` is another one after each rotation, so that clients which keep keys by their ID fetch the new one. */
  #pair: { readonly key: KeyObject; readonly id: string } | null;

  /** @param pem a former value of {@link pem}, from the state file */
  constructor(pem: string | undefined) {
    this.#pair = pem === undefined ? null : withId(createPrivateKey(pem));
  }

  /** The private key, PEM; null before its first use. */
  get pem(): string | null {
    return this.#pair?.key.export({ type: 'pkcs8', format: 'pem' }).toString() ?? null;
  }

  sign(typ: JwtType, claims: JwtClaims): string {
    const { key, id } = this.#getOrCreate();
    const text = signingInput({ alg: 'RS256', typ, kid: id }, claims);
    return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
  }

  /** The claims of a JWT of this type that this key has signed, or null. It does not check expiry. */
  verify(typ: JwtType, jwt: string): Readonly<Record<string, unknown>> | null {
    const [header, claims, signature, ...rest] = jwt.split('.');
    if (
      this.#pair === null ||
      header === undefined ||
      claims === undefined ||
      signature === undefined ||
      rest.length > 0
    )
      return null;
    const { key } = this.#pair;
    const isOurs = verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'));
    return isOurs && decode(header).typ === typ ? decode(claims) : null;
  }

  /** The public key as a JWK Set (RFC 7517, 5). */
  jwks(): object {
    const { key, id } = this.#getOrCreate();
    return { keys: [{ ...createPublicKey(key).export({ format: 'jwk' }), kid: id, alg: 'RS256', use: 'sig' }] };
  }

  /** Replaces the key, which invalidates every JWT. */
  rotate(): void {
    this.#pair = null;
  }

  #getOrCreate() {
    this.#pair ??= withId(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
    return this.#pair;
  }
}

function withId(key: KeyObject) {
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  return { key, id: hash('sha256', spki, 'base64url').slice(0, 16) };
}

/** A JWT that nobody has signed (RFC 7519, 6). */
export function unsignedJwt(claims: JwtClaims): string {
  return `${signingInput({ alg: 'none' }, claims)}.`;
}

/** A part of a JWT whose signature was verified. */
function decode(part: string) {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

/** RFC 7515, 5.1. */
function signingInput(header: object, claims: JwtClaims): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode(header)}.${encode(claims)}`;
}

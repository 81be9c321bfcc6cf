import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  hash,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { hmacSha256, timingSafeEqualText } from '../../system/secret-hash.ts';

/** The claims of a JWT: those of an ID token (OpenID Connect Core, 2) or of an access token (RFC 9068, 2.2). */
export interface JwtClaims {
  /** The frontend origin. */
  readonly iss: string;
  /** The user's, see `subjectOf`; the client's ID if there is no user. */
  readonly sub: string;
  readonly aud: string | readonly string[];
  /** Seconds since 1970. */
  readonly iat: number;
  /** Seconds since 1970. */
  readonly exp: number;
  readonly [name: string]: unknown;
}

/**
 * A JWT, signed with HS256. It does not use jose, because that signs asynchronously, and the token endpoint decides
 * synchronously.
 */
export function signWithSecret(claims: object, secret: string): string {
  const text = signingInput({ alg: 'HS256', typ: 'JWT' }, claims);
  return `${text}.${hmacSha256(secret, text)}`;
}

/** The claims of a JWT of {@link signWithSecret}, or null. It does not check expiry. */
export function verifyWithSecret<Claims>(jwt: string, secret: string): Claims | null {
  const end = Math.max(0, jwt.lastIndexOf('.'));
  const text = jwt.slice(0, end);
  const isOurs = timingSafeEqualText(jwt.slice(end + 1), hmacSha256(secret, text));
  return isOurs ? decode(text.split('.')[1] ?? '') : null;
}

/** The claim `at_hash` of an ID token that is signed with a SHA-256 algorithm (OpenID Connect Core, 3.1.3.6). */
export function accessTokenHash(accessToken: string): string {
  return hash('sha256', accessToken, 'buffer').subarray(0, 16).toString('base64url');
}

/** The media type of an ID token or an access token, without `application/` (RFC 7515, 4.1.9). */
type JwtType = 'JWT' | 'at+jwt';

/**
 * The key that signs the JWTs of `/oauth2/`, and the one before it. Every client knows RS256 (OpenID Connect Core, 15.1),
 * and it signs the same claims alike, so that a token that is issued again is the same token. The key is generated when
 * it is first needed.
 */
export class SigningKey {
  /** The newest first. Each has an `id` of its own, so that clients which keep keys by their ID fetch a new one. */
  #pairs: readonly { readonly key: KeyObject; readonly id: string }[];

  /** @param pem a former value of {@link pem}, from the state file */
  constructor(pem: string | null) {
    this.#pairs = (pem?.match(/-----BEGIN[\s\S]+?-----END[^\n]+/g) ?? []).map((one) => withId(createPrivateKey(one)));
  }

  /** The private keys, PEM, the newest first; null before the first use. */
  get pem(): string | null {
    const all = this.#pairs.map(({ key }) => key.export({ type: 'pkcs8', format: 'pem' }));
    return all.length === 0 ? null : all.join('');
  }

  sign(typ: JwtType, claims: JwtClaims): string {
    const { key, id } = this.#getOrCreate();
    const text = signingInput({ alg: 'RS256', typ, kid: id }, claims);
    return `${text}.${sign('sha256', Buffer.from(text), key).toString('base64url')}`;
  }

  /** The claims of a JWT of this type that one of the keys has signed, or null. It does not check expiry. */
  verify(typ: JwtType, jwt: string): Readonly<Record<string, unknown>> | null {
    const [header, claims, signature, ...rest] = jwt.split('.');
    if (header === undefined || claims === undefined || signature === undefined || rest.length > 0) return null;
    const [signed, bytes] = [Buffer.from(`${header}.${claims}`), Buffer.from(signature, 'base64url')];
    const isOurs = this.#pairs.some(({ key }) => verify('sha256', signed, key, bytes));
    return isOurs && decode(header).typ === typ ? decode(claims) : null;
  }

  /** The public keys as a JWK Set (RFC 7517, 5). */
  jwks(): object {
    this.#getOrCreate();
    const keys = this.#pairs.map(({ key, id }) => ({
      ...createPublicKey(key).export({ format: 'jwk' }),
      kid: id,
      alg: 'RS256',
      use: 'sig',
    }));
    return { keys };
  }

  /** Signs with a new key from now on. The former one still verifies, until the next rotation. */
  rotate(): void {
    this.#pairs = [generatePair(), this.#getOrCreate()];
  }

  #getOrCreate() {
    const [pair = generatePair()] = this.#pairs;
    if (this.#pairs.length === 0) this.#pairs = [pair];
    return pair;
  }
}

function generatePair() {
  return withId(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);
}

function withId(key: KeyObject) {
  const spki = createPublicKey(key).export({ type: 'spki', format: 'der' });
  return { key, id: hash('sha256', spki, 'base64url').slice(0, 16) };
}

/** A JWT that nobody has signed (RFC 7519, 6). */
export function unsignedJwt(claims: JwtClaims): string {
  return `${signingInput({ alg: 'none' }, claims)}.`;
}

/** A claim of a JWT that nobody has verified, or null: only for lookups, never for decisions. */
export function unverifiedClaim(jwt: string, name: string): string | null {
  try {
    const value: unknown = decode(jwt.split('.')[1] ?? '')[name];
    return value === undefined ? null : String(value);
  } catch {
    return null;
  }
}

function decode(part: string) {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}

/** RFC 7515, 5.1. */
function signingInput(header: object, claims: object): string {
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode(header)}.${encode(claims)}`;
}

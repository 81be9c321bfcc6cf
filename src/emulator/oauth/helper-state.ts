import { createSecretKey, type KeyObject } from 'node:crypto';
import { systemRandom } from '../../system/random.ts';
import type { IssuedSecrets } from './issued-secrets.ts';

/** The content of a `state` of the helper flow. */
export interface HelperState {
  /** The JWT's `jti`. */
  readonly id: string;
  readonly clientId: string;
  /** The client's redirect_url for the code, or null if the client only polls. */
  readonly redirectUrl: string | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Result of verifying a state: good, expired, or foreign (forged, damaged, or bound to another client). */
export type StateVerification =
  | { readonly kind: 'good'; readonly state: HelperState }
  | { readonly kind: 'expired' }
  | { readonly kind: 'foreign' };

/**
 * The `state` of the helper flow: a JWT that is unique, signed, and bound to its client by `aud` (docs/portal.md, 1).
 * The claims are the emulator's choice, because clients do not read them.
 */
export class HelperStates {
  #key: KeyObject;
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;

  /** @param key a former value of {@link key}, from the state file; undefined: generates one */
  constructor(key: string | undefined, now: () => number, issued: IssuedSecrets) {
    this.#key = key === undefined ? generateKey() : createSecretKey(key, 'base64url');
    this.#now = now;
    this.#issued = issued;
  }

  /**
   * Issues a state for a client.
   * @param lifetime in seconds
   */
  async issue(clientId: string, redirectUrl: string | null, lifetime: number): Promise<string> {
    const { SignJWT } = await import('jose');
    const now = this.#now();
    const jwt = await new SignJWT(redirectUrl === null ? {} : { redirect_url: redirectUrl })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setIssuer(ISSUER)
      .setAudience(clientId)
      .setJti(systemRandom.token(16))
      .setIssuedAt(new Date(now))
      .setExpirationTime(new Date(now + 1000 * lifetime))
      .sign(this.#key);
    return this.#issued.record('state', jwt);
  }

  /** The key that signs states, base64url. */
  get key(): string {
    return this.#key.export().toString('base64url');
  }

  /** Replaces the key, which invalidates every state issued so far. */
  rotateKey(): void {
    this.#key = generateKey();
  }

  /** Verifies signature, algorithm, client and expiry. Without `clientId` it accepts a state of any client. */
  async validate(jwt: string, clientId?: string): Promise<StateVerification> {
    const state = await this.#verify(jwt);
    if (state === null || (clientId !== undefined && state.clientId !== clientId)) return { kind: 'foreign' };
    return state.expiresAt <= this.#now() ? { kind: 'expired' } : { kind: 'good', state };
  }

  /** The state in a JWT that this emulator signed, expired or not, or null. */
  async #verify(jwt: string): Promise<HelperState | null> {
    const { jwtVerify } = await import('jose');
    try {
      const { payload } = await jwtVerify<StateClaims>(jwt, this.#key, {
        algorithms: ['HS256'],
        issuer: ISSUER,
        requiredClaims: ['jti', 'aud', 'exp'],
        currentDate: new Date(0),
      });
      const { jti, aud, exp, redirect_url } = payload;
      if (typeof jti !== 'string' || typeof aud !== 'string' || exp === undefined) return null;
      return { id: jti, clientId: aud, redirectUrl: redirect_url ?? null, expiresAt: 1000 * exp };
    } catch {
      return null;
    }
  }
}

/** The ID inside a state, unverified; null if there is none. Only for lookups, never for decisions. */
export function unverifiedStateId(jwt: string): string | null {
  try {
    const claims: unknown = JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString());
    return typeof claims === 'object' && claims !== null && 'jti' in claims ? String(claims.jti) : null;
  } catch {
    return null;
  }
}

function generateKey(): KeyObject {
  return createSecretKey(systemRandom.token(32), 'base64url');
}

const ISSUER = 'latchkey-emulator';

interface StateClaims {
  readonly redirect_url?: string;
}

import { createSecretKey, type KeyObject } from 'node:crypto';
import { systemRandom } from '../../system/random.ts';
import type { IssuedSecrets } from './issued-secrets.ts';

/** What a state stands for: one run of the helper flow, of one client. */
export interface HelperState {
  /** The JWT's `jti`. */
  readonly id: string;
  readonly clientId: string;
  /** Where the client wants the code to be brought, or null where it only polls. */
  readonly redirectUrl: string | null;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A state that was checked: good, past its expiry, or none of ours (forged, damaged, another client's). */
export type StateVerification =
  | { readonly kind: 'good'; readonly state: HelperState }
  | { readonly kind: 'expired' }
  | { readonly kind: 'foreign' };

/**
 * The `state` of the helper flow: a JWT, unique, signed, and bound to its client by `aud` (specification, "OAuth2 helper
 * configuration"). The claims are the emulator's choice; at the portal they are not shown.
 */
export class HelperStates {
  #key: KeyObject;
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;

  /** @param key from before, as {@link key} tells it; default: a fresh one */
  constructor(key: string | undefined, now: () => number, issued: IssuedSecrets) {
    this.#key = key === undefined ? generateKey() : createSecretKey(key, 'base64url');
    this.#now = now;
    this.#issued = issued;
  }

  /**
   * A new state of this client.
   * @param lifetime seconds
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

  /** What states are signed with, base64url. */
  get key(): string {
    return this.#key.export().toString('base64url');
  }

  /** Makes every state issued so far worthless. */
  rotateKey(): void {
    this.#key = generateKey();
  }

  /** Checks signature, algorithm, client and expiry. Without a client any client's state is good. */
  async validate(jwt: string, clientId?: string): Promise<StateVerification> {
    const state = await this.#verify(jwt);
    if (state === null || (clientId !== undefined && state.clientId !== clientId)) return { kind: 'foreign' };
    return state.expiresAt <= this.#now() ? { kind: 'expired' } : { kind: 'good', state };
  }

  /** The state in a JWT of our own, expired or not, or null. */
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

/** The id inside a state, unchecked; null where there is none. For looking things up, never for deciding anything. */
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

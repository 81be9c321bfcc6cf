import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../memory/bounded-collections.ts';
import type { IssuedSecrets } from './issued-secrets.ts';

/** What a login allows: who, to which client, and by which way the code travels. */
export interface Authorization {
  readonly clientId: string;
  readonly user: string;
  /** The scope of the authorization request; null where it asked for none. */
  readonly scope: string | null;
  /** The id of the helper's state, or null in the ordinary authorization code flow. */
  readonly stateId: string | null;
  /** The redirection endpoint asked for in the ordinary flow, or null in the helper's. */
  readonly redirectUri: string | null;
}

/** An authorization code and what became of it (RFC 6749, 4.1.2). */
export interface AuthorizationCode extends Authorization {
  readonly value: string;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  /** The grant it was exchanged for, or null while it is unused. */
  grantId: string | null;
}

/** Codes that are remembered, used and expired ones too: a second use must be noticed. */
const MAX_CODES = 50_000;

/** Issues authorization codes and finds them again. */
export class AuthorizationCodes {
  readonly #codes = new BoundedMap<AuthorizationCode>(MAX_CODES);
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;

  /** @param kept the codes from before, the oldest first */
  constructor(kept: readonly AuthorizationCode[], now: () => number, issued: IssuedSecrets) {
    for (const code of kept) this.#codes.set(code.value, code);
    this.#now = now;
    this.#issued = issued;
  }

  issue(authorization: Authorization): AuthorizationCode {
    const value = this.#issued.record('code', systemRandom.token(32));
    const code = { ...authorization, value, issuedAt: this.#now(), grantId: null };
    this.#codes.set(value, code);
    return code;
  }

  /** The code was exchanged for a grant. */
  markExchanged(code: AuthorizationCode, grantId: string): void {
    code.grantId = grantId;
  }

  /** All codes, the oldest first. */
  all(): AuthorizationCode[] {
    return this.#codes.values();
  }

  /** Forgets all codes: they are dead. */
  clear(): void {
    this.#codes.clear();
  }

  /** A code that was issued, whatever became of it. */
  find(value: string): AuthorizationCode | undefined {
    return this.#codes.get(value);
  }

  /**
   * Whether the code's time has not run out; it may have been used.
   * @param lifetime seconds
   */
  isUnexpired(code: AuthorizationCode, lifetime: number): boolean {
    return this.#now() < code.issuedAt + 1000 * lifetime;
  }
}

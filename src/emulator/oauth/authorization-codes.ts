import { systemRandom } from '../../system/random.ts';
import { BoundedMap } from '../bounded-collections.ts';
import type { IssuedSecrets } from './issued-secrets.ts';

/** What a login grants: by which user, to which client, and how the code is delivered. */
interface Authorization {
  readonly clientId: string;
  readonly user: string;
  /** The scope of the authorization request, or null if it had none. */
  readonly scope: string | null;
  /** The ID of the helper's state, or null in the ordinary authorization code flow. */
  readonly stateId: string | null;
  /** The redirect_uri of the ordinary flow, or null in the helper flow. */
  readonly redirectUri: string | null;
  /** Only if the code is from `/oauth2/authorize`, and so valid only at `/oauth2/token`. */
  readonly oauth2?: OAuth2Binding;
}

/** What a token request must repeat or prove. */
export interface OAuth2Binding {
  /** Whether the authorization request contained the redirect_uri (RFC 6749, 4.1.3). */
  readonly sentRedirectUri: boolean;
  /** The S256 code challenge, or null. */
  readonly challenge: string | null;
  /** Whether the request asked for offline access. */
  readonly offline: boolean;
  /** The name of the issuer; null or left out for the default one. */
  readonly issuer?: string | null;
  /** `nonce` (OpenID Connect Core, 3.1.2.1); left out if the request had none. */
  readonly nonce?: string | undefined;
  /** The API that the access token is for (RFC 8707, 2.1); left out if the request named none. */
  readonly resource?: string | undefined;
  /** The thumbprint of the key that the client must prove (RFC 9449, 10); left out if the request named none. */
  readonly jkt?: string | undefined;
  /** When the user logged in, in milliseconds since 1970; left out before a login. */
  readonly loggedInAt?: number | undefined;
}

/** An authorization code (RFC 6749, 4.1.2), with the grant that it was exchanged for. */
export interface AuthorizationCode extends Authorization {
  readonly value: string;
  /** Milliseconds since 1970. */
  readonly issuedAt: number;
  /** The ID of the grant, or null while the code is unused. */
  grantId: string | null;
}

/** Codes kept, including used and expired ones, so that a second use is detected. */
const MAX_CODES = 50_000;

/** Issues and stores authorization codes. */
export class AuthorizationCodes {
  readonly #codes = new BoundedMap<AuthorizationCode>(MAX_CODES);
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;

  /** @param saved the codes of the state file, oldest first */
  constructor(saved: readonly AuthorizationCode[], now: () => number, issued: IssuedSecrets) {
    for (const code of saved) this.#codes.set(code.value, code);
    this.#now = now;
    this.#issued = issued;
  }

  issue(authorization: Authorization): AuthorizationCode {
    const value = this.#issued.record('code', systemRandom.token(32));
    const code = { ...authorization, value, issuedAt: this.#now(), grantId: null };
    this.#codes.set(value, code);
    return code;
  }

  /** All codes, oldest first. */
  all(): AuthorizationCode[] {
    return this.#codes.values();
  }

  /** An issued code, even if it was used or has expired. */
  find(value: string): AuthorizationCode | undefined {
    return this.#codes.get(value);
  }

  /**
   * Whether the code has not expired. It may have been used.
   * @param lifetime in seconds
   */
  isUnexpired(code: AuthorizationCode, lifetime: number): boolean {
    return this.#now() < code.issuedAt + 1000 * lifetime;
  }
}

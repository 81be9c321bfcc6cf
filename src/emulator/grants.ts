import { systemRandom } from '../system/random.ts';
import { BearerTokens } from './bearer-tokens.ts';
import { BoundedMap } from './bounded.ts';
import type { IssuedSecrets } from './issued-secrets.ts';
import type { Observations } from './observations.ts';
import type { Settings } from './options.ts';

/** What a user allowed a client, and the family of tokens that came of it. */
export interface Grant {
  readonly id: string;
  readonly clientId: string;
  readonly user: string;
  readonly scope: string | null;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** When the newest tokens were issued, in milliseconds since 1970. */
  refreshedAt: number;
  /** The newest pair of tokens, from 1. */
  generation: number;
  revoked: boolean;
  /** Access tokens of older generations than this one were revoked. */
  accessFrom: number;
  /** Refreshes being worked on right now. */
  inFlight: number;
  /** The newest generations whose refresh token was presented. */
  readonly presented: Set<number>;
}

/** A token response (specification, "Token response"; RFC 6749, 5.1). */
export interface TokenResponse {
  readonly access_token: string;
  /** Seconds. */
  readonly expires_in: number;
  readonly token_type: 'bearer';
  readonly scope: string | null;
  readonly refresh_token: string;
}

/** A refresh token that was looked at: its grant, or why it is no good. */
export type PresentedToken = { readonly grant: Grant } | { readonly refused: string };

/** Remembered grants; past it the one refreshed longest ago is forgotten, and its tokens are dead. */
const GRANTS = 100_000;
/** Presented generations remembered of each grant. */
const PRESENTED = 64;

/** The grants and their tokens: issue, refresh token rotation, reuse, revocation. */
export class Grants {
  readonly #grants = new BoundedMap<Grant>(GRANTS);
  readonly #tokens = new BearerTokens();
  readonly #settings: Settings;
  readonly #now: () => number;
  readonly #issued: IssuedSecrets;
  readonly #observations: Observations;

  constructor(settings: Settings, now: () => number, issued: IssuedSecrets, observations: Observations) {
    this.#settings = settings;
    this.#now = now;
    this.#issued = issued;
    this.#observations = observations;
  }

  /** A new grant, without tokens yet: {@link issueTokens} gives the first ones. */
  create(clientId: string, user: string, scope: string | null): Grant {
    const now = this.#now();
    const grant = {
      id: systemRandom.token(12),
      clientId,
      user,
      scope,
      createdAt: now,
      refreshedAt: now,
      generation: 0,
      revoked: false,
      accessFrom: 0,
      inFlight: 0,
      presented: new Set<number>(),
    };
    this.#grants.set(grant.id, grant);
    return grant;
  }

  /** The next generation of tokens. Access tokens given before stay valid to their end. */
  issueTokens(grant: Grant): TokenResponse {
    grant.generation += 1;
    grant.refreshedAt = this.#now();
    this.#grants.set(grant.id, grant);
    const claims = { grantId: grant.id, generation: grant.generation, issuedAt: grant.refreshedAt };
    return {
      access_token: this.#issued.note('access_token', this.#tokens.seal('access_token', claims)),
      expires_in: this.#settings.tokenLifetime,
      token_type: 'bearer',
      scope: grant.scope,
      refresh_token: this.#issued.note('refresh_token', this.#tokens.seal('refresh_token', claims)),
    };
  }

  /**
   * Takes a refresh token from a client that has authenticated. A used one past its grace is refused and, with
   * `onReuse: 'revoke-family'`, takes its grant with it (RFC 9700, 4.14.2). Another client's changes nothing.
   */
  present(clientId: string, token: string): PresentedToken {
    const claims = this.#tokens.open('refresh_token', token);
    const grant = this.ofRefreshToken(clientId, token);
    if (claims === null || grant === null) return { refused: 'unknown token' };
    if (wasPresented(grant, claims.generation)) this.#observations.refreshTokensRepeated += 1;
    remember(grant, claims.generation);
    if (grant.revoked) return { refused: 'the grant was revoked' };
    if (this.#now() >= claims.issuedAt + this.#settings.refreshLifetime) return { refused: 'the token has expired' };
    if (grant.generation - claims.generation > this.#settings.refreshGrace) {
      if (this.#settings.onReuse === 'revoke-family') grant.revoked = true;
      return { refused: 'the token was used before' };
    }
    return { grant };
  }

  /** The grant that a refresh token of this client belongs to, whatever became of both; null where it is unknown. */
  ofRefreshToken(clientId: string, token: string): Grant | null {
    const claims = this.#tokens.open('refresh_token', token);
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    return grant?.clientId === clientId ? grant : null;
  }

  /** The grant behind an access token that is good right now, or null. */
  authenticate(token: string): Grant | null {
    const claims = this.#tokens.open('access_token', token);
    const grant = claims === null ? undefined : this.#grants.get(claims.grantId);
    if (claims === null || grant === undefined || grant.revoked || claims.generation < grant.accessFrom) return null;
    return this.#now() < claims.issuedAt + 1000 * this.#settings.tokenLifetime ? grant : null;
  }

  find(id: string): Grant | undefined {
    return this.#grants.get(id);
  }

  all(): Grant[] {
    return this.#grants.values();
  }
}

function wasPresented(grant: Grant, generation: number): boolean {
  return grant.presented.has(generation) || generation + PRESENTED < grant.generation;
}

function remember(grant: Grant, generation: number): void {
  grant.presented.add(generation);
  if (grant.presented.size <= PRESENTED) return;
  for (const oldest of grant.presented) {
    grant.presented.delete(oldest);
    return;
  }
}

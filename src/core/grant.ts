import { elapsed, type Instant } from './clock.ts';
import type { TokenResponse } from './outcome.ts';
import type { Secret } from './secret.ts';

/** What a pairing leaves: one appliance's tokens, and what is known of the refresh token's fate. */
export interface Grant {
  /** The appliance's client_id. */
  readonly appliance: string;
  /** Grows with every write of tokens, and names the state that a write replaces. */
  readonly generation: number;
  readonly accessToken: Secret;
  readonly refreshToken: Secret;
  readonly scope: string | null;
  /** Milliseconds that the access token lives from `obtained` on. */
  readonly lifetime: number;
  readonly obtained: Instant;
  /** The portal's own clock (its `Date`) when it gave the tokens, in ms since 1970; null where it did not say. */
  readonly portalTime: number | null;
  readonly doubt: Doubt | null;
  /** When the portal refused this refresh token for good. */
  readonly refused: Instant | null;
}

/**
 * The portal may have rotated the refresh token: it was sent, and no whole answer came; or the grant is from a copy, and
 * was used since that was made.
 */
export interface Doubt {
  /** `copy`: the grant is from a copy of the store. Else an answer was lost. */
  readonly kind?: 'copy';
  /** When the first answer was lost, or the copy was made; of a copy only `wall` is known. */
  readonly lostAt: Instant;
  /** How often this refresh token was sent without a whole answer. */
  readonly sends: number;
}

/** The wall clock, confirmed by a portal's `Date` in this boot: `wall` was right at `at`. */
export interface ConfirmedTime {
  readonly wall: number;
  readonly at: Instant;
}

/** The grant that a token response makes, `previous` being the one it replaces. */
export function succeed(
  previous: { readonly appliance: string; readonly generation: number; readonly scope: string | null },
  refreshToken: Secret,
  tokens: TokenResponse,
  obtained: Instant,
  portalTime: number | null,
): Grant {
  return {
    appliance: previous.appliance,
    generation: previous.generation + 1,
    accessToken: tokens.accessToken,
    refreshToken,
    scope: tokens.scope ?? previous.scope,
    lifetime: tokens.lifetime,
    obtained,
    portalTime,
    doubt: null,
    refused: null,
  };
}

/**
 * Milliseconds that the access token at hand still lives; null where nobody can know, because it was obtained in
 * another boot and the clock is not confirmed yet.
 */
export function remaining(grant: Grant, now: Instant, confirmed: ConfirmedTime | null): number | null {
  const age = elapsed(grant.obtained, now) ?? ageByPortal(grant, now, confirmed);
  return age === null ? null : Math.max(0, grant.lifetime - Math.max(0, age));
}

function ageByPortal(grant: Grant, now: Instant, confirmed: ConfirmedTime | null): number | null {
  if (confirmed === null || grant.portalTime === null) return null;
  const since = elapsed(confirmed.at, now);
  return since === null ? null : confirmed.wall + since - grant.portalTime;
}

/** The least that a handed-out token should have left, in ms: 60 s, at most a tenth of its lifetime. */
export function leastLeft(grant: Grant): number {
  return Math.min(60_000, grant.lifetime / 10);
}

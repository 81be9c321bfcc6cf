import { type Appliance, sameScope } from '../appliances/appliance.ts';
import { type ConfirmedTime, confirmedTimeAt, elapsed, type Instant } from '../clock.ts';
import type { PortalIdentity } from '../portal.ts';
import type { Secret } from '../secret.ts';
import type { TokenResponse } from './token-outcome.ts';

/** What a pairing leaves: one appliance's tokens, and what is known of the refresh token's fate. */
export interface Grant {
  /** The appliance's id. */
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
  /** When its appliance said that the cloud refuses this access token: it is never handed out again. */
  readonly accessTokenRejectedAt: Instant | null;
  /** Since when the portal has not taken the hub's own credentials for it. */
  readonly misconfigured: Instant | null;
  /** The scope that the portal was asked for. */
  readonly requestedScope: string | null;
  /** With which account of the portal somebody logged in, for display alone; left out if the portal does not tell. */
  readonly account?: string;
  /** The portal that gave it. */
  readonly issuer: PortalIdentity;
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

/** How far two sources of the true time may lie apart, in ms: one that is further behind is wrong. */
const MAX_SKEW = 60_000;
/** A `Date` tells whole seconds. */
const DATE_RESOLUTION = 1000;

/** The grant that a token response makes, `previous` being the one it replaces. */
export function grantFromTokenResponse(
  previous: Pick<Grant, 'appliance' | 'generation' | 'scope' | 'requestedScope' | 'account' | 'issuer'> &
    Partial<Pick<Grant, 'accessToken' | 'accessTokenRejectedAt'>>,
  refreshToken: Secret,
  tokens: TokenResponse,
  obtained: Instant,
  portalTime: number | null,
): Grant {
  const account = tokens.account ?? previous.account;
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
    misconfigured: null,
    accessTokenRejectedAt: carryOverRejection(tokens.accessToken, previous),
    requestedScope: previous.requestedScope,
    ...(account === undefined ? {} : { account }),
    issuer: previous.issuer,
  };
}

/** Whether an access token is rejected: a portal may give the very same one again, and then it is no better than before. */
export function carryOverRejection(
  accessToken: Secret,
  previous: Partial<Pick<Grant, 'accessToken' | 'accessTokenRejectedAt'>>,
): Instant | null {
  return previous.accessToken?.reveal() === accessToken.reveal() ? (previous.accessTokenRejectedAt ?? null) : null;
}

/**
 * Milliseconds that the access token at hand still serves; null where nobody can know, because it was obtained in
 * another boot and the clock is not confirmed yet.
 */
export function remainingLifetime(grant: Grant, now: Instant, confirmed: ConfirmedTime | null): number | null {
  if (grant.accessTokenRejectedAt !== null) return 0;
  const age = tokenAge(grant, now, confirmed);
  return age === null ? null : Math.max(0, grant.lifetime - age);
}

/**
 * Milliseconds since the access token was obtained; null where nobody can know, because that was in another boot, and
 * the true time is not confirmed yet or lies before it.
 */
export function tokenAge(grant: Grant, now: Instant, confirmed: ConfirmedTime | null): number | null {
  const age = elapsed(grant.obtained, now);
  if (age !== null) return Math.max(0, age);
  const time = confirmedTimeAt(confirmed, now);
  if (time === null || grant.portalTime === null) return null;
  const byPortal = time - grant.portalTime;
  return byPortal < -MAX_SKEW ? null : Math.max(0, byPortal) + DATE_RESOLUTION;
}

/** The least that a handed-out token should have left, in ms: 60 s, at most a tenth of its lifetime. */
export function minRemaining(grant: Grant): number {
  return Math.min(60_000, grant.lifetime / 10);
}

/** Whether the configuration has another scope by now than a grant was asked for, so that only another pairing brings it. */
export function hasScopeChanged(
  { origin, scope }: Pick<Appliance, 'origin' | 'scope'>,
  grant: Pick<Grant, 'requestedScope'> | undefined,
): boolean {
  if (grant === undefined || origin !== 'declared') return false;
  return !sameScope(scope, grant.requestedScope);
}

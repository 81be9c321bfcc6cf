import { type Appliance, sameScope } from '../appliances/appliance.ts';
import { type ConfirmedTime, confirmedTimeAt, elapsed, type Instant } from '../clock.ts';
import type { PortalIdentity } from '../portal.ts';
import type { Secret } from '../secret.ts';
import type { TokenResponse } from './token-outcome.ts';

/** One appliance's tokens, and what the hub knows about their validity. A pairing creates it. */
export interface Grant {
  /** The appliance's id. */
  readonly appliance: string;
  /** Grows with every write of tokens. A write names the generation that it replaces. */
  readonly generation: number;
  readonly accessToken: Secret;
  readonly refreshToken: Secret;
  readonly scope: string | null;
  /** Lifetime of the access token from `obtained` on, in ms. */
  readonly lifetime: number;
  readonly obtained: Instant;
  /** The portal's clock (`Date` of the token response), in ms since 1970; null if the response had none. */
  readonly portalTime: number | null;
  readonly doubt: Doubt | null;
  /** When the portal permanently refused this refresh token. */
  readonly refused: Instant | null;
  /** When the appliance reported that the cloud refuses this access token. The hub never issues it again. */
  readonly accessTokenRejectedAt: Instant | null;
  /** Since when the portal has not accepted the hub's own credentials. */
  readonly misconfigured: Instant | null;
  /** The scope that the hub requested. */
  readonly requestedScope: string | null;
  /** The portal account with which somebody logged in, for display only; left out if the portal does not report it. */
  readonly account?: string;
  /** The portal that issued the grant. */
  readonly issuer: PortalIdentity;
}

/**
 * The portal may have rotated the refresh token: the hub sent it and got no complete response, or the grant was
 * restored from a copy (a backup or a snapshot) and may have been used after the copy was made.
 */
export interface Doubt {
  /** `copy`: the grant is from a copy of the store. Left out if an answer was lost. */
  readonly kind?: 'copy';
  /** When the first answer was lost, or the copy was made; for a copy only `wall` is known. */
  readonly lostAt: Instant;
  /** How often the hub has sent this refresh token without getting a complete response. */
  readonly sends: number;
}

/** Largest difference between two sources of the true time, in ms: a source that is further behind is wrong. */
const MAX_SKEW = 60_000;
/** A `Date` header has whole seconds. In ms. */
const DATE_RESOLUTION = 1000;

/** The grant that results from a token response; it replaces `previous`. */
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

/**
 * When an access token was rejected; null if it was not. A portal may issue the same token again, and it is still
 * rejected then.
 */
export function carryOverRejection(
  accessToken: Secret,
  previous: Partial<Pick<Grant, 'accessToken' | 'accessTokenRejectedAt'>>,
): Instant | null {
  return previous.accessToken?.reveal() === accessToken.reveal() ? (previous.accessTokenRejectedAt ?? null) : null;
}

/**
 * Remaining lifetime of the current access token, in ms; null if it is unknown, because the token was obtained in
 * another boot and the clock is not confirmed yet.
 */
export function remainingLifetime(grant: Grant, now: Instant, confirmed: ConfirmedTime | null): number | null {
  if (grant.accessTokenRejectedAt !== null) return 0;
  const age = tokenAge(grant, now, confirmed);
  return age === null ? null : Math.max(0, grant.lifetime - age);
}

/**
 * Milliseconds since the access token was obtained; null if that is unknown, because it was obtained in another boot,
 * and the true time is not confirmed yet or is before that.
 */
export function tokenAge(grant: Grant, now: Instant, confirmed: ConfirmedTime | null): number | null {
  const age = elapsed(grant.obtained, now);
  if (age !== null) return Math.max(0, age);
  const time = confirmedTimeAt(confirmed, now);
  if (time === null || grant.portalTime === null) return null;
  const portalAge = time - grant.portalTime;
  return portalAge < -MAX_SKEW ? null : Math.max(0, portalAge) + DATE_RESOLUTION;
}

/** Shortest remaining lifetime that an issued token should have, in ms: 60 s, but at most a tenth of its lifetime. */
export function minRemaining(grant: Grant): number {
  return Math.min(60_000, grant.lifetime / 10);
}

/**
 * Whether the configured scope differs from the scope that was requested for the grant. Only a new pairing changes
 * that.
 */
export function hasScopeChanged(
  { origin, scope }: Pick<Appliance, 'origin' | 'scope'>,
  grant: Pick<Grant, 'requestedScope'> | undefined,
): boolean {
  if (grant === undefined || origin !== 'declared') return false;
  return !sameScope(scope, grant.requestedScope);
}

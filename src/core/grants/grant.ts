import { type ConfirmedTime, confirmedTimeAt, elapsed, type Instant } from '../clock.ts';
import type { Connection } from '../connections/connection.ts';
import { sameScope } from '../connections/scope.ts';
import type { PortalIdentity } from '../portals/identity.ts';
import type { TokenResponse } from '../portals/token-outcome.ts';
import type { Secret } from '../secret.ts';

/** A connection's tokens, and what the hub knows about their validity. A pairing or an import creates it. */
export interface Grant {
  /** The connection's id. */
  readonly connection: string;
  /** Grows with every write of tokens. A write names the generation that it replaces. */
  readonly generation: number;
  readonly accessToken: Secret;
  /** Null if the portal gave none: then nothing can replace the access token. */
  readonly refreshToken: Secret | null;
  readonly scope: string | null;
  /** Lifetime of the access token from `obtained` on, in ms. */
  readonly lifetime: number;
  readonly obtained: Instant;
  /** The true time then, by NTP or the portal's clock, in ms since 1970; null if neither was known. */
  readonly portalTime: number | null;
  readonly doubt: Doubt | null;
  /** When the portal permanently refused this refresh token. */
  readonly refused: Instant | null;
  /** When an appliance reported that the cloud refuses this access token. The hub never issues it again. */
  readonly accessTokenRejectedAt: Instant | null;
  /** Since when the portal has not accepted the hub's own credentials. */
  readonly misconfigured: Instant | null;
  /** The scope that the hub requested. */
  readonly requestedScope: string | null;
  /** The portal account with which somebody logged in, for display only; left out if the portal does not report it. */
  readonly account?: string;
  /** The portal that issued the grant. */
  readonly issuer: PortalIdentity;
  /** The portal's ID token (OpenID Connect Core 1.0, 2) of the last response that had one; left out if none had. */
  readonly idToken?: Secret;
  /** The login that the grant is from; left out if its time is not known, as for an imported grant. */
  readonly login?: Login;
  /** How long the refresh token lives from `obtained` on, in ms; left out if the portal does not say. */
  readonly refreshTokenLifetime?: number;
}

/** The login that a grant is from. */
export interface Login {
  /** The id of the pairing in which a person logged in. */
  readonly pairing: string;
  readonly at: Instant;
  /** The true time then, as in {@link Grant.portalTime}. */
  readonly portalTime: number | null;
  /**
   * The whole lifetime that the portal gave a refresh token, in ms, when the end of that lifetime was last put off: at
   * the login, or at a later refresh. Null if the portal does not say.
   */
  readonly refreshTokenLifetime: number | null;
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
/** Two refreshes that are closer to each other do not show whether the end of the refresh token moves, in ms. */
const MIN_REFRESH_GAP = 10_000;

/** The grant that results from a token response; it replaces `previous`. */
export function grantFromTokenResponse(
  previous: Pick<Grant, 'connection' | 'generation' | 'scope' | 'requestedScope' | 'account' | 'issuer'> &
    Partial<Pick<Grant, 'accessToken' | 'accessTokenRejectedAt' | 'idToken'>> &
    PreviousLogin,
  refreshToken: Secret | null,
  tokens: TokenResponse,
  obtained: Instant,
  portalTime: number | null,
): Grant {
  const account = tokens.account ?? previous.account;
  const idToken = tokens.idToken ?? previous.idToken;
  const { refreshTokenLifetime } = tokens;
  const login = loginAfterRefresh(previous, refreshTokenLifetime, obtained, portalTime);
  return {
    connection: previous.connection,
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
    ...(idToken === undefined ? {} : { idToken }),
    ...(login === undefined ? {} : { login }),
    ...(refreshTokenLifetime === undefined ? {} : { refreshTokenLifetime }),
  };
}

/** Whether two grants have the same tokens. */
export function hasSameTokens(one: Grant, other: Grant): boolean {
  return (
    one.accessToken.reveal() === other.accessToken.reveal() &&
    one.refreshToken?.reveal() === other.refreshToken?.reveal()
  );
}

/** Whether a grant is from the same login as another one. False if either login is not known. */
export function isFromSameLogin({ login }: Pick<Grant, 'login'>, { login: other }: Pick<Grant, 'login'>): boolean {
  return login !== undefined && login.pairing === other?.pairing;
}

/** Whether a grant is from a later login than another one. False if either login is not known. */
export function isFromLaterLogin(one: Pick<Grant, 'login'>, other: Pick<Grant, 'login'>): boolean {
  const { login } = one;
  if (login === undefined || other.login === undefined || isFromSameLogin(one, other)) return false;
  return (elapsed(other.login.at, login.at) ?? login.at.wall - other.login.at.wall) > 0;
}

type PreviousLogin = Partial<Pick<Grant, 'login' | 'obtained' | 'portalTime' | 'refreshTokenLifetime'>>;

/**
 * The login of a grant after a token response. If the response puts off the end of the refresh token, its lifetime is
 * the whole one from then on; if the end stays where it was, the whole lifetime stays too, see `loginEnd`.
 * @param previous without `obtained` if the response is the first one after the login
 * @param lifetime of the refresh token, in ms; undefined if the response does not say
 */
function loginAfterRefresh(
  { login, obtained: before, portalTime: timeBefore = null, refreshTokenLifetime: lifetimeBefore }: PreviousLogin,
  lifetime: number | undefined,
  obtained: Instant,
  portalTime: number | null,
): Login | undefined {
  if (login === undefined || before === undefined || lifetime === undefined) return login;
  if (lifetimeBefore === undefined) return { ...login, refreshTokenLifetime: lifetime };
  const confirmed = portalTime === null ? null : { wall: portalTime, at: obtained };
  const gap = ageOf(before, timeBefore, obtained, confirmed);
  if (gap === null || gap < MIN_REFRESH_GAP) return login;
  const putOffBy = gap + lifetime - lifetimeBefore;
  return Math.abs(putOffBy) <= gap / 2 ? login : { ...login, refreshTokenLifetime: lifetime };
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
  return ageOf(grant.obtained, grant.portalTime, now, confirmed);
}

/**
 * Milliseconds since a response of the portal; null if that is unknown, as in {@link tokenAge}.
 * @param at when it came
 * @param portalTime the true time then, as in {@link Grant.portalTime}
 */
export function ageOf(
  at: Instant,
  portalTime: number | null,
  now: Instant,
  confirmed: ConfirmedTime | null,
): number | null {
  const age = elapsed(at, now);
  if (age !== null) return Math.max(0, age);
  const time = confirmedTimeAt(confirmed, now);
  if (time === null || portalTime === null) return null;
  const portalAge = time - portalTime;
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
  { origin, scope }: Pick<Connection, 'origin' | 'scope'>,
  grant: Pick<Grant, 'requestedScope'> | undefined,
): boolean {
  if (grant === undefined || origin !== 'declared') return false;
  return !sameScope(scope, grant.requestedScope);
}

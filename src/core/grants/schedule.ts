import type { ConfirmedTime, Instant } from '../clock.ts';
import { type Grant, minRemaining, remainingLifetime, tokenAge } from './grant.ts';
import { type LoginLimits, refreshTokenLifetimeOf } from './login-end.ts';

/** A token with a shorter lifetime expires before anybody can use it, in ms. */
const MIN_USEFUL_LIFETIME = 3000;
/**
 * The interval at which the hub refreshes grants with such short-lived tokens in the background, in ms; appliances get
 * theirs by an on-demand refresh. In the long run the hub refreshes no grant more often in the background, whatever
 * lifetimes the portal sets, because each refresh wears the SD card.
 */
const BACKGROUND_INTERVAL = 30_000;
/** How many refreshes may follow each other faster than that before the limit applies. */
const MAX_BURST = 60;
/** Shortest time between two refreshes of a grant, unless a person forces one, in ms. */
const MIN_REFRESH_INTERVAL = 2000;

/** Shortest time between two refreshes because the cloud refused an access token, in ms. */
const FORCED_REFRESH_INTERVAL = 60_000;
/**
 * A token must be older than this, or than a tenth of its lifetime, before the hub replaces it for a `min_ttl`; in ms.
 */
const MIN_RENEWAL_AGE = 60_000;

/** What decides the time of the next refresh. */
export interface ScheduleInput {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  /** When the last refresh began because the cloud had refused the access token, on the boot clock in ms. */
  readonly lastForcedRefresh: number | null;
  /** When this run of the hub began, on the boot clock in ms. */
  readonly startedAt: number;
  /** From 0 to 1, constant for this grant: it keeps a fleet from refreshing at the same time. */
  readonly jitterOffset: number;
  /** When logins at the portal end by themselves; left out if that is not known. */
  readonly loginLimits?: LoginLimits;
  /** Whether a refresh ends the access token at once, so that it comes as late as possible; left out if not. */
  readonly endsAccessToken?: boolean;
}

/**
 * When to refresh a healthy grant, on the boot clock in ms: at 75 to 85 % of the token's lifetime, or of the lifetime of
 * the refresh token if that is shorter. If a refresh ends the access token, it comes shortly before the token's end.
 * Refreshes that became due while the hub was not running, and those of tokens of unknown age, are spread over half a
 * lifetime from the start, because after a power cut a whole fleet starts at the same time. If more than a tenth of the
 * lifetime is left, they are spread over the remaining lifetime, so that no token expires because of a restart; they
 * always come before the refresh token expires. A token request of an appliance does not wait for this time.
 *
 * Without a refresh token this is the end of the access token, see {@link accessTokenEnd}; null if that is unknown.
 */
export function nextRefreshAt(grant: Grant, input: ScheduleInput): number | null {
  if (grant.refreshToken === null) return accessTokenEnd(grant, input);
  const { now, confirmed, startedAt: since, jitterOffset } = input;
  const { lifetime } = grant;
  const age = tokenAge(grant, now, confirmed);
  const ofRefreshToken = refreshTokenLifetimeOf(grant, input.loginLimits);
  // The last run would have refreshed the grant at 85 % of that lifetime. The machine was off for part of the rest.
  if (age === null) return since + jitterOffset * Math.min(lifetime / 2, ofRefreshToken / 20);
  const obtained = now.uptime - age;
  const due = obtained + refreshInterval(grant, input);
  if (due >= since) return due;
  const left = obtained + lifetime - since;
  const window = left > lifetime / 10 ? left - minRemaining(grant) : lifetime / 2;
  const refreshTokenLeft = Math.max(0, obtained + ofRefreshToken - since);
  return since + jitterOffset * Math.min(window, refreshTokenLeft / 2);
}

/**
 * When the access token of a grant without a refresh token has ended for certain, on the boot clock in ms; null while
 * its age is unknown because the clock is not confirmed. A confirmed clock does not help if the portal's response had no
 * `Date`: then the token ends at the latest its lifetime after the start, because it was obtained before that.
 */
export function accessTokenEnd(
  grant: Grant,
  { now, confirmed, startedAt }: Pick<ScheduleInput, 'now' | 'confirmed' | 'startedAt'>,
): number | null {
  const left = remainingLifetime(grant, now, confirmed);
  if (left !== null) return now.uptime + left;
  return confirmed === null ? null : startedAt + grant.lifetime;
}

/**
 * The earliest time at which an appliance's token request may trigger a refresh of a healthy grant, on the boot clock
 * in ms.
 */
export function onDemandRefreshAt({ obtained }: Grant, now: Instant): number {
  return obtained.boot === now.boot ? obtained.uptime + MIN_REFRESH_INTERVAL : now.uptime;
}

/**
 * When to replace an access token that an appliance reported as rejected, on the boot clock in ms: at once, but at most
 * once per {@link FORCED_REFRESH_INTERVAL}, so that an appliance that rejects every token does not flood the portal.
 */
export function forcedRefreshAt({ now, lastForcedRefresh }: Pick<ScheduleInput, 'now' | 'lastForcedRefresh'>): number {
  return lastForcedRefresh === null ? now.uptime : lastForcedRefresh + FORCED_REFRESH_INTERVAL;
}

/**
 * Until when the hub must not refresh a grant in the background after an attempt at `now`; both on the boot clock in
 * ms. This is a token bucket: {@link MAX_BURST} attempts, and one more per {@link BACKGROUND_INTERVAL}. Attempts that
 * an appliance waits for count too, but are not delayed.
 * @param before the result for the previous attempt; -Infinity for the first
 */
export function throttledUntil(before: number, now: number): number {
  return Math.min(Math.max(before, now - MAX_BURST * BACKGROUND_INTERVAL), now) + BACKGROUND_INTERVAL;
}

/**
 * Whether a refresh would give an appliance a token that meets its `min_ttl`. A token that was refreshed just now is
 * not refreshed again, so that an appliance that keeps asking for more does not flood the portal.
 * @param left remaining lifetime of the current access token, in ms
 * @param minTtl shortest remaining lifetime that the appliance accepts, in ms
 */
export function wouldRefreshMeetMinTtl({ lifetime }: Grant, left: number, minTtl: number): boolean {
  const age = lifetime - left;
  return left < minTtl && minTtl <= lifetime && age > Math.min(MIN_RENEWAL_AGE, lifetime / 10);
}

/**
 * Whether a token request must wait for a refresh: the remaining lifetime of the current access token is too short, or
 * a refresh would meet `min_ttl`. Token responses have whole seconds, so less than one second counts as none.
 * @param left remaining lifetime of the current access token, in ms
 * @param minTtl shortest remaining lifetime that the appliance accepts, in ms
 */
export function needsRefreshBeforeIssue(grant: Grant, left: number, minTtl: number): boolean {
  return left < Math.max(minRemaining(grant), 1000) || wouldRefreshMeetMinTtl(grant, left, minTtl);
}

function refreshInterval(grant: Grant, { jitterOffset, loginLimits, endsAccessToken }: ScheduleInput): number {
  const { lifetime } = grant;
  if (lifetime < MIN_USEFUL_LIFETIME) return BACKGROUND_INTERVAL;
  const share = 0.75 + 0.1 * jitterOffset;
  const ofToken = endsAccessToken === true ? lifetime - minRemaining(grant) : lifetime * share;
  return Math.min(ofToken, share * refreshTokenLifetimeOf(grant, loginLimits));
}

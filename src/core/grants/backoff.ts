import { type ConfirmedTime, DAY, HOUR, type Instant } from '../clock.ts';
import { type Doubt, type Grant, minRemaining, tokenAge } from './grant.ts';
import { type LoginLimits, type LostAnswerRetry, refreshTokenLifetimeOf } from './login-end.ts';

/** What decides when the next attempt follows a failed one. */
export interface RetryContext {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  readonly retryLostAnswer: LostAnswerRetry;
  /** A random number from 0 to 1, for jitter. */
  readonly fraction: number;
  /** When logins at the portal end by themselves; left out if that is not known. */
  readonly loginLimits?: LoginLimits;
}

/** Milliseconds until the hub's next background attempt, and until one that an appliance waits for. */
export interface RetryDelays {
  readonly background: number;
  readonly onDemand: number;
}

/** How delays between attempts grow, in milliseconds. */
export interface Backoff {
  /** The first delay's upper bound. */
  readonly base: number;
  /** The upper bound of every delay. */
  readonly cap: number;
}

/** Upper bound of the first delay for tokens that live for days, in ms. */
const MAX_FIRST_DELAY = 600_000;

/**
 * The delay before the hub's next background attempt while the portal is unreachable. The first retry comes before the
 * current access token expires. Later retries are so far apart that a whole fleet adds at most twice its usual
 * requests, however long the outage lasts. They are less than one lifetime apart, so that each grant is refreshed
 * within a lifetime of the outage's end. Half of each delay is jitter.
 * @param lifetime of the grant's tokens, in ms
 * @param failures how many attempts have failed in a row, from 1
 * @param fraction a random number from 0 to 1
 */
export function backgroundDelay(lifetime: number, failures: number, fraction: number): number {
  return ((1 + fraction) / 2) * (failures <= 1 ? firstBackgroundDelay(lifetime) : maxBackgroundDelay(lifetime));
}

/**
 * The delay before the hub's next background attempt if the portal is overloaded and names a time (`Retry-After`). Such
 * a portal is reachable, so the hub tries again before the current access token expires. The delay grows with the time
 * that this lasts.
 * @param lifetime of the grant's tokens, in ms
 * @param duration for how long the portal has been asking to come back later, in ms
 * @param fraction a random number from 0 to 1
 */
export function delayAfterDeferral(lifetime: number, duration: number, fraction: number): number {
  const bound = Math.max(firstBackgroundDelay(lifetime), 2 * duration);
  return ((1 + fraction) / 2) * Math.min(maxBackgroundDelay(lifetime), bound);
}

/**
 * The backoff of background attempts after a failure that does not affect the whole fleet: the hub's own network was
 * down, or one answer was lost.
 */
export function fastBackoff(lifetime: number): Backoff {
  return { base: 2000, cap: maxBackgroundDelay(lifetime) };
}

function firstBackgroundDelay(lifetime: number): number {
  return Math.max(2000, Math.min(MAX_FIRST_DELAY, lifetime / 10));
}

function maxBackgroundDelay(lifetime: number): number {
  return Math.max(5000, Math.min(DAY, 0.8 * lifetime));
}

/** The backoff of attempts that an appliance waits for: at most five minutes, and less for short-lived tokens. */
export function onDemandBackoff(lifetime: number): Backoff {
  return { base: 2000, cap: Math.max(5000, Math.min(300_000, lifetime / 4)) };
}

/**
 * The delay before the next attempt. Full jitter keeps hubs that lost the portal at the same moment from coming back at
 * the same moment. The delay is at least a second, or `cap` if that is less.
 * @param failures how many attempts have failed in a row, from 1
 * @param fraction a random number from 0 to 1
 */
export function backoffDelay({ base, cap }: Backoff, failures: number, fraction: number): number {
  const bound = Math.min(cap, base * 2 ** Math.min(failures - 1, 30));
  return Math.max(Math.min(1000, bound), fraction * bound);
}

/**
 * The delay if the portal named one: the requested delay, from a second to a day, and up to a tenth or six minutes more,
 * so that the hubs of a fleet do not return in the same second. All in ms.
 * @param limit how long the hub may wait at most, if that is more than an hour
 */
export function retryAfterDelay(retryAfter: number, fraction: number, limit: number): number {
  const delay = Math.max(1000, Math.min(retryAfter, DAY, Math.max(HOUR, limit)));
  return delay + (fraction * Math.min(delay, HOUR)) / 10;
}

/**
 * With `late`, how long the hub waits after the access token has expired by the hub's count, in ms: the portal counts
 * from when it issued the token, a little after the hub sent the request.
 */
const EXPIRY_MARGIN = 1000;

/**
 * Milliseconds for which the hub must not send the old refresh token of a grant in doubt, because another use might
 * make the portal revoke an access token that is still valid. With `early`, the hub may retry once at once, and again
 * shortly before the access token expires. With `late`, it retries only after the access token has expired. If the
 * cloud refuses the access token, a retry risks nothing, and there is no hold-off.
 */
export function lostAnswerHoldOff(
  grant: Grant,
  { now, confirmed, retryLostAnswer }: Pick<RetryContext, 'now' | 'confirmed' | 'retryLostAnswer'>,
): number {
  if (grant.doubt === null || grant.accessTokenRejectedAt !== null || awaitsEarlyRetry(grant, { retryLostAnswer }))
    return 0;
  const age = tokenAge(grant, now, confirmed);
  if (age === null) return 0;
  return Math.max(0, grant.lifetime - age + (retryLostAnswer === 'early' ? -minRemaining(grant) : EXPIRY_MARGIN));
}

/** Whether the one early retry, meant for portals that accept the old token for a grace period, is still to come. */
function awaitsEarlyRetry({ doubt }: Grant, { retryLostAnswer }: Pick<RetryContext, 'retryLostAnswer'>): boolean {
  return doubt !== null && retryLostAnswer === 'early' && doubt.sends <= 1;
}

/**
 * Milliseconds until the next attempt after a lost answer: a few seconds for the early retry, else the backoff, cut to
 * the hold-off if there is one. The attempt still waits for the end of the hold-off, see `nextAttemptAt` in refresh-health.ts.
 */
export function lostAnswerDelays(grant: Grant, doubt: Doubt, failures: number, context: RetryContext): RetryDelays {
  const { retryLostAnswer, fraction } = context;
  if (retryLostAnswer === 'early' && doubt.sends === 1) return fixedDelays(1000 + 2000 * fraction);
  const holdOff = lostAnswerHoldOff({ ...grant, doubt }, context);
  const onDemand = backoffDelay(onDemandBackoff(grant.lifetime), failures, fraction);
  if (holdOff === 0) return { background: backgroundRetryDelay(grant, failures, context), onDemand };
  const background = backoffDelay(fastBackoff(grant.lifetime), failures, fraction);
  return { background: Math.min(background, holdOff), onDemand: Math.min(onDemand, holdOff) };
}

/**
 * Milliseconds until the hub's next background attempt. It comes soon if the failure concerns this hub only: an answer
 * was lost, or an appliance reported its access token as rejected.
 */
export function backgroundRetryDelay(grant: Grant, failures: number, context: RetryContext): number {
  const { retryLostAnswer, fraction } = context;
  return grant.accessTokenRejectedAt !== null || awaitsEarlyRetry(grant, { retryLostAnswer })
    ? backoffDelay(fastBackoff(grant.lifetime), failures, fraction)
    : backgroundDelay(refreshPeriod(grant, context), failures, fraction);
}

/** The time within which a grant must be refreshed, in ms: the lifetime of its tokens. */
export function refreshPeriod(grant: Grant, { loginLimits }: Pick<RetryContext, 'loginLimits'>): number {
  return Math.min(grant.lifetime, refreshTokenLifetimeOf(grant, loginLimits));
}

/** The delays as times on the boot clock, in ms. */
export function retryTimes({ background, onDemand }: RetryDelays, now: Instant) {
  return { retryAt: now.uptime + background, onDemandAt: now.uptime + onDemand };
}

/** The same delay for background attempts and those that an appliance waits for. */
export function fixedDelays(delay: number): RetryDelays {
  return { background: delay, onDemand: delay };
}

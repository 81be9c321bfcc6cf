import type { ConfirmedTime, Instant } from '../clock.ts';
import { backgroundDelay, backoffDelay, fastBackoff, onDemandBackoff } from './backoff.ts';
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

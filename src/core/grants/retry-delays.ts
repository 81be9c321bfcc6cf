import type { ConfirmedTime, Instant } from '../clock.ts';
import { backgroundDelay, backoffDelay, fastBackoff, onDemandBackoff } from './backoff.ts';
import { type Doubt, type Grant, minRemaining, tokenAge } from './grant.ts';

/** When the old refresh token is sent again after a lost answer: docs/decisions/lost-answers.md. */
export type RetryLostAnswer = 'early' | 'late';

/** What the next attempt after a failed one is worked out from. */
export interface RetryContext {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  readonly retryLostAnswer: RetryLostAnswer;
  /** A random number from 0 to 1, for jitter. */
  readonly fraction: number;
}

/** Milliseconds to the hub's own next attempt, and to one that an appliance waits for. */
export interface RetryDelays {
  readonly background: number;
  readonly onDemand: number;
}

/**
 * What the end of the token at hand is overrun by, in ms, where nothing may be risked before it: a portal counts from
 * when it issued the token, which is a little after the hub asked for it.
 */
const EXPIRY_MARGIN = 1000;

/**
 * Milliseconds for which the old refresh token must not be sent because of a doubt, whatever else may happen: each further use
 * might make the portal revoke a token that still serves. With `early` one early retry is free, and the next comes
 * shortly before the token at hand ends; with `late` there is none before it has ended. A token that the cloud refuses serves no longer,
 * and nothing is lost by another use.
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

/** A lost answer is followed by one early retry, for portals with a grace time, and it has not reached the portal yet. */
function awaitsEarlyRetry({ doubt }: Grant, { retryLostAnswer }: Pick<RetryContext, 'retryLostAnswer'>): boolean {
  return doubt !== null && retryLostAnswer === 'early' && doubt.sends <= 1;
}

/** Milliseconds to the next use of the old refresh token, right after an answer was lost: at its hold-off's end no backoff goes on. */
export function lostAnswerDelays(grant: Grant, doubt: Doubt, failures: number, context: RetryContext): RetryDelays {
  const { retryLostAnswer, fraction } = context;
  if (retryLostAnswer === 'early' && doubt.sends === 1) return equalDelays(1000 + 2000 * fraction);
  const holdOff = lostAnswerHoldOff({ ...grant, doubt }, context);
  const onDemand = backoffDelay(onDemandBackoff(grant.lifetime), failures, fraction);
  if (holdOff === 0) return { background: backgroundRetryDelay(grant, failures, context), onDemand };
  const quick = backoffDelay(fastBackoff(grant.lifetime), failures, fraction);
  return { background: Math.min(quick, holdOff), onDemand: Math.min(onDemand, holdOff) };
}

/**
 * Milliseconds to the hub's own next attempt: soon where no other hub has cause for the same, which is where an answer was lost,
 * or an appliance has said that the token at hand is no good.
 */
export function backgroundRetryDelay(
  grant: Grant,
  failures: number,
  { retryLostAnswer, fraction }: RetryContext,
): number {
  return grant.accessTokenRejectedAt !== null || awaitsEarlyRetry(grant, { retryLostAnswer })
    ? backoffDelay(fastBackoff(grant.lifetime), failures, fraction)
    : backgroundDelay(grant.lifetime, failures, fraction);
}

/** The delays as times on the boot clock, in ms. */
export function retryTimes({ background, onDemand }: RetryDelays, now: Instant) {
  return { retryAt: now.uptime + background, onDemandAt: now.uptime + onDemand };
}

/** The same delay for both. */
export function equalDelays(delay: number): RetryDelays {
  return { background: delay, onDemand: delay };
}

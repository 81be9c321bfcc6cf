import { DAY, HOUR } from '../clock.ts';
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

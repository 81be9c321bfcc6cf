/** How delays between attempts grow, in milliseconds. */
export interface Backoff {
  /** The first delay's upper bound. */
  readonly base: number;
  /** The upper bound of every delay. */
  readonly cap: number;
}

const DAY = 86_400_000;
/** Where tokens live for days, the first attempt is not put off as long as there would be time for it, in ms. */
const MAX_FIRST_DELAY = 600_000;

/**
 * The delay before the hub's own next attempt while the portal is out of reach. The first comes while the token at hand still
 * lives, and every other one so much later that all the hubs that wait, of which there are the more the longer it lasts,
 * never add more than twice the requests that they make anyway; and before a lifetime is over, so that each grant is fresh
 * again within one. Half of each delay is jitter.
 * @param lifetime of the grant's tokens, in ms
 * @param failures how many attempts have failed in a row, from 1
 * @param fraction a random number from 0 to 1
 */
export function backgroundDelay(lifetime: number, failures: number, fraction: number): number {
  return ((1 + fraction) / 2) * (failures <= 1 ? firstBackgroundDelay(lifetime) : maxBackgroundDelay(lifetime));
}

/**
 * The delay before the hub's own next attempt at a portal that has no room now and names a time: such a portal is not away, and
 * is asked again while the token at hand lives. The longer it goes on, the later.
 * @param lifetime of the grant's tokens, in ms
 * @param lasting for how long it has been asking to come back later, in ms
 * @param fraction a random number from 0 to 1
 */
export function deferredDelay(lifetime: number, lasting: number, fraction: number): number {
  return (
    ((1 + fraction) / 2) * Math.min(maxBackgroundDelay(lifetime), Math.max(firstBackgroundDelay(lifetime), 2 * lasting))
  );
}

/**
 * The hub's own attempts where these add nothing to what the hubs of a city do: its own network was away, or one answer was
 * lost.
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

/** The attempts that an appliance waits for: at most five minutes apart, and less for tokens that live shorter. */
export function onDemandBackoff(lifetime: number): Backoff {
  return { base: 2000, cap: Math.max(5000, Math.min(300_000, lifetime / 4)) };
}

/**
 * The delay before the next attempt: full jitter, so that many hubs that lost the portal at once don't come back at
 * once, and never under a second.
 * @param failures how many attempts have failed in a row, from 1
 * @param fraction a random number from 0 to 1
 */
export function backoffDelay({ base, cap }: Backoff, failures: number, fraction: number): number {
  const bound = Math.min(cap, base * 2 ** Math.min(failures - 1, 30));
  return Math.max(Math.min(1000, bound), fraction * bound);
}

/**
 * The delay when the portal named one: what it asked for, at most an hour, and up to a tenth more so that not
 * everybody returns in the same second.
 */
export function retryAfterDelay(retryAfter: number, fraction: number): number {
  return Math.max(1000, Math.min(retryAfter, 3_600_000)) * (1 + fraction / 10);
}

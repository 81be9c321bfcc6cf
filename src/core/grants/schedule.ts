import type { ConfirmedTime, Instant } from '../clock.ts';
import { type Grant, minRemaining, tokenAge } from './grant.ts';

/** A token that lives shorter than this is dead before it is used, in ms. */
const MIN_USEFUL_LIFETIME = 3000;
/**
 * Such tokens are fetched when an appliance asks; this often, in ms, they are refreshed to keep the grant. In the long run
 * the hub refreshes none more often on its own, whatever lifetimes the portal gives: each refresh wears the card.
 */
const BACKGROUND_INTERVAL = 30_000;
/** Refreshes that may follow each other faster than that, before it counts. */
const MAX_BURST = 60;
/** No grant is refreshed sooner after the last time, whoever asks but a person, in ms. */
const MIN_REFRESH_INTERVAL = 2000;

/** A token that the cloud refused is replaced no sooner after the last one for which that was the reason, in ms. */
const FORCED_REFRESH_INTERVAL = 60_000;
/** A token of this age is not exchanged for one that lasts longer, in ms; of short-lived ones, of a tenth of their life. */
const MIN_RENEWAL_AGE = 60_000;

/** What the time of the next refresh is judged by. */
export interface ScheduleInput {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  /** When the last refresh was begun because the cloud had refused the token at hand, on the boot clock in ms. */
  readonly lastForcedRefresh: number | null;
  /** When this run of the hub began, on the boot clock in ms. */
  readonly startedAt: number;
  /** From 0 to 1, the same for this grant always: it keeps a fleet of hubs from refreshing in step. */
  readonly jitterOffset: number;
}

/**
 * When a grant in good health is to be refreshed, on the boot clock in ms: at 75 to 85 % of the token's lifetime. What
 * came due while the hub did not run, and tokens whose age can't be known yet, are spread over half a lifetime from
 * its start: after a city's power cut, all hubs start at once. Where enough is left of the token they are spread over that,
 * so that none runs out because its hub was started again. An appliance that asks does not wait for that.
 */
export function nextRefreshAt(grant: Grant, { now, confirmed, startedAt: since, jitterOffset }: ScheduleInput): number {
  const { lifetime } = grant;
  const age = tokenAge(grant, now, confirmed);
  if (age === null) return since + (jitterOffset * lifetime) / 2;
  const obtained = now.uptime - age;
  const due = obtained + refreshInterval(lifetime, jitterOffset);
  if (due >= since) return due;
  const left = obtained + lifetime - since;
  return since + jitterOffset * (left > lifetime / 10 ? left - minRemaining(grant) : lifetime / 2);
}

/** The earliest time, on the boot clock in ms, at which an appliance that waits may have a good grant refreshed. */
export function onDemandRefreshAt({ obtained }: Grant, now: Instant): number {
  return obtained.boot === now.boot ? obtained.uptime + MIN_REFRESH_INTERVAL : now.uptime;
}

/**
 * When a distrusted token is to be replaced, on the boot clock in ms: at once, but an appliance that finds fault with
 * every token does not storm the portal.
 */
export function forcedRefreshAt({ now, lastForcedRefresh }: Pick<ScheduleInput, 'now' | 'lastForcedRefresh'>): number {
  return lastForcedRefresh === null ? now.uptime : lastForcedRefresh + FORCED_REFRESH_INTERVAL;
}

/**
 * Until when the hub refreshes a grant no more on its own, after an attempt at `now`; both on the boot clock in ms. It is a
 * token bucket: {@link MAX_BURST} attempts, and one more each {@link BACKGROUND_INTERVAL}. Those that an appliance waits for
 * count too and are not held back.
 * @param before what this gave at the attempt before; -Infinity at the first
 */
export function throttledUntil(before: number, now: number): number {
  return Math.min(Math.max(before, now - MAX_BURST * BACKGROUND_INTERVAL), now) + BACKGROUND_INTERVAL;
}

/**
 * Whether a refresh gives an appliance a token that lasts as long as it wishes. One that has just been refreshed is as
 * good as they come: an appliance that asks for more, again and again, does not storm the portal.
 * @param left what is left of the token at hand, in ms
 * @param minTtl how long the token should last at least, in ms
 */
export function wouldRefreshMeetMinTtl({ lifetime }: Grant, left: number, minTtl: number): boolean {
  const age = lifetime - left;
  return left < minTtl && minTtl <= lifetime && age > Math.min(MIN_RENEWAL_AGE, lifetime / 10);
}

/**
 * Whether an appliance that asks is to wait for a refresh: too little is left of the token at hand, or another one would last
 * longer. What is left is told in whole seconds, so that less than one is nothing.
 * @param left what is left of the token at hand, in ms
 * @param minTtl how long the token should last at least, in ms
 */
export function needsRefreshBeforeIssue(grant: Grant, left: number, minTtl: number): boolean {
  return left < Math.max(minRemaining(grant), 1000) || wouldRefreshMeetMinTtl(grant, left, minTtl);
}

function refreshInterval(lifetime: number, jitterOffset: number): number {
  return lifetime < MIN_USEFUL_LIFETIME ? BACKGROUND_INTERVAL : lifetime * (0.75 + 0.1 * jitterOffset);
}

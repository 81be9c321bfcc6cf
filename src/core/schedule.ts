import type { ConfirmedTime, Instant } from './clock.ts';
import { ageOf, type Grant } from './grant.ts';

/** A token that lives shorter than this is dead before it is used, in ms. */
const SHORTEST_USE = 3000;
/** Such tokens are fetched when an appliance asks; this often, in ms, they are refreshed to keep the grant. */
const KEPT_EVERY = 30_000;
/** No grant is refreshed sooner after the last time, whoever asks but a person, in ms. */
const SHORTEST_REST = 2000;

/** What the time of the next refresh is judged by. */
export interface Timetable {
  readonly now: Instant;
  readonly confirmed: ConfirmedTime | null;
  /** When this run of the hub began, on the boot clock in ms. */
  readonly since: number;
  /** From 0 to 1, the same for this grant always: it keeps a fleet of hubs from refreshing in step. */
  readonly spread: number;
}

/**
 * When a grant in good health is to be refreshed, on the boot clock in ms: at 75 to 85 % of the token's lifetime. What
 * came due while the hub did not run, and tokens whose age can't be known yet, are spread over half a lifetime from
 * its start: after a city's power cut, all hubs start at once. An appliance that asks does not wait for that.
 */
export function regularDue(grant: Grant, { now, confirmed, since, spread }: Timetable): number {
  const age = ageOf(grant, now, confirmed);
  const due = age === null ? null : now.uptime - age + interval(grant.lifetime, spread);
  return due !== null && due >= since ? due : since + (spread * grant.lifetime) / 2;
}

/** The earliest time, on the boot clock in ms, at which an appliance that waits may have a good grant refreshed. */
export function promptedDue({ obtained }: Grant, now: Instant): number {
  return obtained.boot === now.boot ? obtained.uptime + SHORTEST_REST : now.uptime;
}

function interval(lifetime: number, spread: number): number {
  return lifetime < SHORTEST_USE ? KEPT_EVERY : lifetime * (0.75 + 0.1 * spread);
}

import { REFRESH_LEASE, SEND_TIME } from '../../../src/store/postgres/link/site-state.ts';
import { CONNECTION, HUBS, type HubName } from './model-hub.ts';
import type { RefreshRequest } from './model-portal.ts';
import type { WorldParts } from './world-parts.ts';

/** The longest time of a request to the portal, in ms. */
export const REQUEST_TIMEOUT = 120_000;

/** The requests of a hub's current run that wait for an outcome. */
export function openRequests({ portal }: WorldParts, name: HubName): RefreshRequest[] {
  return portal.requests.filter(({ hub, isSettled }) => hub === name && !isSettled);
}

/**
 * The next moment that matters: something is due, a refresh may no longer be sent, or a lease has ended. In ms from the
 * start of the check; null if there is none.
 */
export function nextMoment({ database, hubs }: WorldParts): number | null {
  const { leased_until: leasedUntil = null } = database.row(CONNECTION) ?? {};
  const moments = HUBS.map((name) => hubs[name].dueAt ?? 0);
  if (database.settlesAt !== null) moments.push(database.settlesAt + 1);
  if (leasedUntil !== null) {
    const end = leasedUntil - database.now + database.time;
    moments.push(end - REFRESH_LEASE + SEND_TIME + 1, end + 1);
  }
  const later = moments.filter((moment) => moment > database.time);
  return later.length === 0 ? null : Math.min(...later);
}

/** Whether a hub has something to do that takes no longer than until then, unless the hub is paused. */
export function isBusy(world: WorldParts, name: HubName, until: number): boolean {
  const { run, dueAt } = world.hubs[name];
  if (run === null) return false;
  const isWaiting = openRequests(world, name).some(
    ({ state, writtenAt }) => state !== 'processed' || until > writtenAt + REQUEST_TIMEOUT,
  );
  const isDue = (dueAt ?? Number.POSITIVE_INFINITY) <= world.database.time;
  const hasNews = run.news !== 'none' && !run.connections.isAway;
  return isWaiting || isDue || hasNews || run.connections.calls.length > 0;
}

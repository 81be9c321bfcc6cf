import type { HubProblem, SiteStatus } from '../../core/administration.ts';
import { rfc3339 } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { SiteHub, SiteStore } from '../../core/site.ts';

/** A hub that the database has not seen for this long is missing, in ms. */
const MISSING_AFTER = 10 * 60_000;

/** The site and its hubs by name, as the database last had them. */
export function siteStatus({ siteId, hubId, hubs }: Pick<SiteStore, 'siteId' | 'hubId' | 'hubs'>): SiteStatus {
  return {
    id: siteId,
    hubs: hubs
      .toSorted((a, b) => a.name.localeCompare(b.name) || a.id.localeCompare(b.id))
      .map(({ id, name, address, version, lastSeen }) => ({
        id,
        name,
        address,
        version,
        lastSeen: rfc3339(lastSeen),
        ...(id === hubId && { thisHub: true }),
      })),
  };
}

/**
 * The problem that hubs have not been seen for ten minutes; null if there is none. The time is that of the newest
 * heartbeat, so that no hub is missing because the database is away.
 */
export function findMissingHubs({ hubs, hubId }: Pick<SiteStore, 'hubs' | 'hubId'>): Omit<HubProblem, 'code'> | null {
  const now = Math.max(...hubs.map(({ lastSeen }) => lastSeen));
  const missing = hubs.filter(({ id, lastSeen }) => id !== hubId && now - lastSeen >= MISSING_AFTER);
  if (missing.length === 0) return null;
  const names = missing.map(({ name, id, lastSeen }) => `${name} (${id}) since ${rfc3339(lastSeen)}`);
  const message = `${missing.length === 1 ? 'A hub' : `${missing.length} hubs`} of the site ${missing.length === 1 ? 'has' : 'have'} not been seen: ${names.join(', ')}`;
  return { message, since: rfc3339(Math.min(...missing.map(({ lastSeen }) => lastSeen))) };
}

/**
 * The hub to remove from the list of its site.
 * @param name its name or id
 * @throws Failure `request_invalid`, `not_allowed` as `Administration.removeHub`
 */
export function findHubToRemove({ hubs, hubId }: Pick<SiteStore, 'hubs' | 'hubId'>, name: string): SiteHub {
  const named = hubs.filter((hub) => hub.id === name);
  const [found, ...others] = named.length > 0 ? named : hubs.filter((hub) => hub.name === name);
  if (found === undefined)
    throw new Failure('request_invalid', `the site has no hub ${name}: "latchkey status" lists its hubs`);
  if (others.length > 0)
    throw new Failure('request_invalid', `several hubs of the site are called ${name}: give the id of the hub instead`);
  if (found.isAlive || found.id === hubId)
    throw new Failure('not_allowed', `the hub ${name} is running: stop it first, and make sure that it does not start`);
  return found;
}

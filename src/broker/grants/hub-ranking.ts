import type { SiteHub, SiteStore } from '../../core/site.ts';

/** The hubs of a site, as one of them sees them. */
interface RankedSite extends Pick<SiteStore, 'hubId'> {
  readonly hubs: readonly Pick<SiteHub, 'id' | 'isAlive'>[];
}

/**
 * Which hub of a site refreshes a connection: the place of this hub among those that are alive, 0 for the first. Each
 * connection has an order of its own, in which a hub that comes or goes moves no other (rendezvous hashing). The others
 * stand in if the first one does not refresh it in time. Without a site it is always 0.
 */
export function createHubRanking(site: RankedSite | null): (connection: string) => number {
  if (site === null) return () => 0;
  return (connection) => {
    const own = weight(site.hubId, connection);
    return site.hubs.filter(({ id, isAlive }) => isAlive && weight(id, connection) > own).length;
  };
}

/** 32 bits that look random (FNV-1a with a final mix). */
function weight(hub: string, connection: string): number {
  let hash = 0x811c9dc5;
  for (const character of `${hub} ${connection}`) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return (hash ^ (hash >>> 13)) >>> 0;
}

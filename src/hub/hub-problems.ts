import type { PortalClients, RejectedClient } from '../broker/portal-clients.ts';
import type { BrokerStore } from '../broker/ports.ts';
import type { HubLeaf } from '../certificates/leaf.ts';
import type { HubProblem } from '../core/administration.ts';
import { type Clock, type Instant, rfc3339, wallTimeOf } from '../core/clock.ts';
import type { Connection } from '../core/connections/connection.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import type { HubProblemCode } from '../core/health/hub-conditions.ts';
import { keysOf } from '../core/keys.ts';
import { capitalize } from '../core/letter-case.ts';
import { NO_PORTAL } from '../core/portals/portal-status.ts';
import type { MdnsAdvertiser } from '../mdns/announcing/advertiser.ts';
import type { CommitSummary, CommitTimes } from '../store/sqlite/commit-times.ts';
import type { LocalStore } from './open-state.ts';
import type { Portals } from './portals/connect-portals.ts';
import { findMissingHubs } from './site/site-status.ts';

/** How many appliances a problem names. */
const MAX_NAMES = 5;

/** What the hub's problems are found in. */
export interface HubProblemSources {
  readonly clock: Clock;
  readonly store: BrokerStore;
  /** Null on a site. */
  readonly local:
    | (Pick<LocalStore, 'volatileReason'> & { readonly store: { readonly commitTimes: CommitTimes } })
    | null;
  /** RFC 3339: when the hub was started, which is when it found the problems of its store. */
  readonly startedAt: string;
  readonly leaf: Pick<HubLeaf, 'expiryProblem'>;
  readonly advertiser: Pick<MdnsAdvertiser, 'idConflict' | 'nameConflict' | 'announcementProblem'>;
  readonly portals: Pick<Portals, 'moved' | 'names'>;
  readonly portalClients: Pick<PortalClients, 'rejected'>;
  /** Returns the name of an appliance by its id. */
  nameOf(appliance: string): string;
  /** Whether the grant of a connection is only in memory. */
  isUnsaved(connection: string): boolean;
}

/** Each connection with its status. */
type Connections = readonly (readonly [Pick<Connection, 'id'>, ConnectionStatus])[];

/** The message of a problem, and since when it has been seen. */
type ObservedProblem = Omit<HubProblem, 'code'>;

/** Finds the problems of the hub as a whole. Since when a problem is seen counts from the first call that finds it. */
export function openHubProblems(sources: HubProblemSources): (connections: Connections) => HubProblem[] {
  const { clock, store, local, startedAt: since, leaf, advertiser, portals, portalClients } = sources;
  const isDatabase = store.writeProblemCode === 'database_unavailable';
  const expiry = (code: HubProblemCode) => (leaf.expiryProblem?.code === code ? leaf.expiryProblem : null);
  const sinceStart = (message: string | null) => (message === null ? null : { message: capitalize(message), since });
  const finders: Readonly<Record<HubProblemCode, (connections: Connections) => ObservedProblem | null>> = {
    database_unavailable: timed(() =>
      isDatabase && store.writeProblem !== null
        ? `The hub issues the tokens that it has, and starts no refresh and no pairing: ${store.writeProblem}`
        : null,
    ),
    // A site's store that can't be written is a database that can't be used.
    store_unwritable: (connections) =>
      isDatabase && store.writeProblem !== null ? null : findStoreWriteProblem(sources, connections),
    hub_missing: () => store.site && findMissingHubs(store.site),
    client_rejected: (connections) => describeRejectedClients(portalClients.rejected, connections),
    no_portal: (connections) => {
      // A login that waits for its portal says which one is missing.
      const isMissing = connections.some(([, { problem }]) => problem?.condition === 'portal_missing');
      return sinceStart(portals.names.length === 0 && !isMissing ? NO_PORTAL.message : null);
    },
    portal_moved: timed(() => portals.moved),
    certificate_expired: () => expiry('certificate_expired'),
    certificate_expiring: () => expiry('certificate_expiring'),
    store_volatile: () => sinceStart(local && describeVolatileStore(local)),
    store_slow: timed(
      () => local && describeSlowStore(local.store.commitTimes.summary()),
      () => local?.store.commitTimes.summary().slowFor ?? 0,
    ),
    store_recovered: () => sinceStart(store.recoverySummary),
    store_changed: () => sinceStart(describeChangedRows(sources)),
    hub_id_taken: timed(() => advertiser.idConflict),
    hub_name_claimed: timed(() => advertiser.nameConflict),
    not_announced: timed(() => {
      const problem = advertiser.announcementProblem;
      return problem && `Appliances can't find the hub by mDNS: ${problem}`;
    }),
  };

  /** Adds to a problem since when it has been seen. @param age how long it has lasted when it is first seen, in ms */
  function timed(describe: () => string | null, age: () => number = () => 0): () => ObservedProblem | null {
    let first: Instant | null = null;
    return () => {
      const message = describe();
      const now = clock.now();
      first = message === null ? null : (first ?? { ...now, wall: now.wall - age() });
      return message === null || first === null
        ? null
        : { message: capitalize(message), since: rfc3339(wallTimeOf(first, now)) };
    };
  }

  return (connections) =>
    keysOf(finders).flatMap((code) => {
      const found = finders[code](connections);
      return found === null ? [] : [{ ...found, code }];
    });
}

/** A write problem is found when the hub starts, or later by the first grant that can't be written. */
function findStoreWriteProblem(
  { store, startedAt, isUnsaved }: HubProblemSources,
  connections: Connections,
): ObservedProblem | null {
  if (store.writeProblem !== null) {
    const message = `The hub can't write its store, so it serves what it has from memory and starts no refresh and no pairing: ${store.writeProblem}`;
    return { message, since: startedAt };
  }
  const affected = connections.flatMap(([{ id }, { title, problem }]) =>
    problem?.code === 'store_unwritable' ? [{ id, title, problem }] : [],
  );
  const unsaved = affected.find(({ id }) => isUnsaved(id));
  const [first] = affected;
  if (unsaved === undefined) return first === undefined ? null : first.problem;
  const { title, problem } = unsaved;
  const message = `New tokens of ${title} are only in memory, and are lost if the hub is switched off before they can be written: ${problem.message}`;
  return { message, since: problem.since };
}

/** The portals that reject the hub as their client, without those that a connection reports. */
function describeRejectedClients(
  rejected: readonly RejectedClient[],
  connections: Connections,
): ObservedProblem | null {
  const reported = connections.flatMap(([, { portal, problem }]) => (problem?.code === 'misconfigured' ? portal : []));
  const found = rejected.filter(({ portal }) => !reported.includes(portal));
  const [first] = found;
  return first === undefined ? null : { message: found.map(({ message }) => message).join('; '), since: first.since };
}

/** A message that nothing that is stored outlives a reboot; null if it does. */
function describeVolatileStore({ volatileReason }: Pick<LocalStore, 'volatileReason'>): string | null {
  if (volatileReason === null) return null;
  return `${volatileReason}, so nothing that the hub stores outlives a reboot: then all appliances and logins are gone`;
}

/** A message about the durations of the store's commits; null if the store is not slow. */
function describeSlowStore({ count, slowCount, median, p90, longest, slowFor }: CommitSummary): string | null {
  if (slowFor === null) return null;
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  return `The hub's SD card or disk may be about to fail: ${slowCount} of the last ${count} writes of the store took longer than a second (median ${seconds(median)}, 90th percentile ${seconds(p90)}, longest ${seconds(longest)})`;
}

/** A message that lists the entries of the store that the hub did not write; null if none is known. */
function describeChangedRows({ store, nameOf }: HubProblemSources): string | null {
  const { registry, sessions, invites } = store;
  const found = [
    ...describeAppliances(
      'appliances',
      registry.damagedAppliances,
      nameOf,
      'their tokens are not available until each is removed and added again',
    ),
    ...describeAppliances(
      'sessions of the appliances',
      sessions.rejected,
      nameOf,
      'these sessions are no longer valid',
    ),
    ...(invites.rejected.size > 0 ? ['invites, which are no longer valid'] : []),
  ];
  if (found.length === 0) return null;
  return `The store has entries that were damaged, or changed by something other than the hub: ${found.join('; ')}`;
}

function describeAppliances(
  what: string,
  ids: ReadonlySet<string>,
  nameOf: (id: string) => string,
  then: string,
): string[] {
  if (ids.size === 0) return [];
  const names = [...ids].slice(0, MAX_NAMES).map(nameOf).join(', ');
  const more = ids.size > MAX_NAMES ? ` and ${ids.size - MAX_NAMES} more` : '';
  return [`${what} ${names}${more} (${then})`];
}

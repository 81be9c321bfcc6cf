import type { BrokerStore } from '../broker/ports.ts';
import type { HubProblem } from '../core/administration.ts';
import type { Connection } from '../core/connections/connection.ts';
import type { ConnectionStatus } from '../core/connections/connection-status.ts';
import type { CommitSummary } from '../store/sqlite/commit-times.ts';

/** How many appliances a problem names. */
const MAX_NAMES = 5;

/** What the hub's problems are derived from. */
interface HubProblemSources {
  readonly store: BrokerStore;
  /** Returns the name of an appliance by its id. */
  readonly nameOf: (appliance: string) => string;
  /** RFC 3339: when the hub was started, which is when it found the problems of its store. */
  readonly startedAt: string;
  /** Each connection with its status. */
  readonly connections: readonly (readonly [Pick<Connection, 'id'>, ConnectionStatus])[];
  /** Whether the grant of a connection is only in memory. */
  readonly isUnsaved: (connection: string) => boolean;
  /** The problem that the owner's own certificate has expired, or expires soon; null if it does not. */
  readonly certificate: HubProblem | null;
  /** On a site: the problem that its database can't be used; null if it can. */
  readonly databaseUnavailable: ObservedProblem | null;
  /** On a site: the problem that hubs have not been seen; null if none is missing. */
  readonly missingHubs: ObservedProblem | null;
  /** Why nothing that is stored outlives a reboot; null if it does. */
  readonly volatileReason: string | null;
  /** The problem that commits of the store take long; null if they do not. */
  readonly slowStore: ObservedProblem | null;
  /** The problem that another hub on the network has this hub's id and key; null if none has. */
  readonly idTaken: ObservedProblem | null;
  /** The problem that another device claims the hub's host name; null if none does. */
  readonly nameClaimed: ObservedProblem | null;
  /** The problem that a portal has moved an endpoint, which a person must confirm; null if none has. */
  readonly portalMoved: ObservedProblem | null;
  /** What keeps the hub from being announced; null if nothing does. */
  readonly unannounced: ObservedProblem | null;
}

/** The message of a problem, and since when it has been seen. */
export type ObservedProblem = Pick<HubProblem, 'message' | 'since'>;

/** The problems of the hub as a whole. */
export function findHubProblems(sources: HubProblemSources): HubProblem[] {
  const { store, nameOf, startedAt: since, certificate, slowStore, idTaken, nameClaimed, unannounced } = sources;
  const { databaseUnavailable, missingHubs, portalMoved, volatileReason } = sources;
  const problems: HubProblem[] = [];
  const unwritable = findStoreWriteProblem(sources);
  if (databaseUnavailable !== null) problems.push({ ...databaseUnavailable, code: 'database_unavailable' });
  else if (unwritable !== null) problems.push({ ...unwritable, code: 'store_unwritable' });
  if (missingHubs !== null) problems.push({ ...missingHubs, code: 'hub_missing' });
  if (portalMoved !== null) {
    problems.push({ ...portalMoved, code: 'portal_moved', message: capitalized(portalMoved.message) });
  }
  if (certificate !== null) problems.push(certificate);
  if (volatileReason !== null) {
    const message = `${volatileReason}, so nothing that the hub stores outlives a reboot: then all appliances and logins are gone`;
    problems.push({ code: 'store_volatile', message, since });
  }
  if (slowStore !== null) problems.push({ ...slowStore, code: 'store_slow' });
  if (store.recoverySummary !== null) {
    problems.push({ code: 'store_recovered', message: capitalized(store.recoverySummary), since });
  }
  const changed = describeChangedRows(store, nameOf);
  if (changed !== null) problems.push({ code: 'store_changed', message: changed, since });
  if (idTaken !== null) problems.push({ ...idTaken, code: 'hub_id_taken', message: capitalized(idTaken.message) });
  if (nameClaimed !== null) {
    problems.push({ ...nameClaimed, code: 'hub_name_claimed', message: capitalized(nameClaimed.message) });
  }
  if (unannounced !== null) {
    const message = `Appliances can't find the hub by mDNS: ${unannounced.message}`;
    problems.push({ ...unannounced, code: 'not_announced', message });
  }
  return problems;
}

/** A write problem is found when the hub starts, or later by the first grant that can't be written. */
function findStoreWriteProblem({
  store,
  startedAt: started,
  connections,
  isUnsaved,
}: HubProblemSources): ObservedProblem | null {
  if (store.writeProblem !== null) {
    const message = `The hub can't write its store, so it serves what it has from memory and starts no refresh and no pairing: ${store.writeProblem}`;
    return { message, since: started };
  }
  const affected = connections.flatMap(([{ id }, { name, problem }]) =>
    problem?.code === 'store_unwritable' ? [{ id, name, problem }] : [],
  );
  const unsaved = affected.find(({ id }) => isUnsaved(id));
  const [first] = affected;
  if (unsaved === undefined) return first === undefined ? null : first.problem;
  const { name, problem } = unsaved;
  const message = `New tokens of ${name} are only in memory, and are lost if the hub is switched off before they can be written: ${problem.message}`;
  return { message, since: problem.since };
}

/** A message that the database of the site can't be used; null if it can. */
export function describeDatabaseUnavailable({ writeProblem }: Pick<BrokerStore, 'writeProblem'>): string | null {
  if (writeProblem === null) return null;
  return `The hub issues the tokens that it has, and starts no refresh and no pairing: ${writeProblem}`;
}

/** A message about the durations of the store's commits; null if the store is not slow. */
export function describeSlowStore({ count, slowCount, median, p90, longest, slowFor }: CommitSummary): string | null {
  if (slowFor === null) return null;
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  return `The hub's SD card or disk may be about to fail: ${slowCount} of the last ${count} writes of the store took longer than a second (median ${seconds(median)}, 90th percentile ${seconds(p90)}, longest ${seconds(longest)})`;
}

/** A message that lists the entries of the store that the hub did not write; null if none is known. */
function describeChangedRows(
  { damagedAppliances, rejectedSessions, hasRejectedInvites }: BrokerStore,
  nameOf: (appliance: string) => string,
): string | null {
  const found = [
    ...describeAppliances(
      'appliances',
      damagedAppliances,
      nameOf,
      'their tokens are not available until each is removed and added again',
    ),
    ...describeAppliances('sessions of the appliances', rejectedSessions, nameOf, 'these sessions are no longer valid'),
    ...(hasRejectedInvites ? ['invites, which are no longer valid'] : []),
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

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

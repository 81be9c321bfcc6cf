import type { BrokerStore } from '../broker/ports.ts';
import type { HubProblem } from '../core/administration.ts';

/** So many appliances are named in one problem. */
const MAX_NAMES = 5;

/**
 * What is wrong with the hub as a whole.
 * @param nameOf tells the name of an appliance by its id
 * @param idTaken in words, that another hub on the network has this one's id and key; null where none has
 * @param since RFC 3339: when the hub was started, which is when it was found
 * @param unannounced what keeps the hub from being announced; null where nothing does
 * @param claimed that another device claims the hub's host name; null where none does
 */
export function hubProblems(
  store: BrokerStore,
  nameOf: (appliance: string) => string,
  idTaken: string | null,
  since: string,
  unannounced: Pick<HubProblem, 'message' | 'since'> | null = null,
  claimed: Pick<HubProblem, 'message' | 'since'> | null = null,
): HubProblem[] {
  const { unwritable, recovered } = store;
  const problems: HubProblem[] = [];
  if (unwritable !== null) {
    const message = `The hub can't write its store, so it serves what it has from memory and starts no refresh and no pairing: ${unwritable}`;
    problems.push({ code: 'store_unwritable', message, since });
  }
  if (recovered !== null) problems.push({ code: 'store_recovered', message: sentence(recovered), since });
  const changed = changedRows(store, nameOf);
  if (changed !== null) problems.push({ code: 'store_changed', message: changed, since });
  if (idTaken !== null) problems.push({ code: 'hub_id_taken', message: sentence(idTaken), since });
  if (claimed !== null) problems.push({ ...claimed, code: 'hub_name_claimed', message: sentence(claimed.message) });
  if (unannounced !== null) {
    const message = `Appliances can't find the hub by mDNS: ${unannounced.message}`;
    problems.push({ code: 'not_announced', message, since: unannounced.since });
  }
  return problems;
}

/** In words, which entries of the store are not as the hub has written them; null where none is known. */
function changedRows(
  { damagedAppliances, refusedSessions, refusedInvites }: BrokerStore,
  nameOf: (appliance: string) => string,
): string | null {
  const found = [
    ...named(
      'appliances',
      damagedAppliances,
      nameOf,
      'nobody gets their tokens, until each is removed and added again',
    ),
    ...named('sessions of the appliances', refusedSessions, nameOf, 'these sessions are forgotten'),
    ...(refusedInvites ? ['invites, which are forgotten'] : []),
  ];
  if (found.length === 0) return null;
  return `The store has entries that were damaged, or changed by something other than the hub: ${found.join('; ')}`;
}

function named(what: string, ids: ReadonlySet<string>, nameOf: (id: string) => string, then: string): string[] {
  if (ids.size === 0) return [];
  const names = [...ids].slice(0, MAX_NAMES).map(nameOf).join(', ');
  const more = ids.size > MAX_NAMES ? ` and ${ids.size - MAX_NAMES} more` : '';
  return [`${what} ${names}${more} (${then})`];
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

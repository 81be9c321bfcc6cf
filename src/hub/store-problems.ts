import type { ApplianceStatus, HubProblem } from '../core/administration.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';

/** How the store stands, for `status`. */
export type StoreStanding = Pick<SqliteStore, 'unwritable' | 'recovered' | 'damagedGrants' | 'damagedAppliances'>;

/**
 * What is wrong with the hub as a whole.
 * @param idTaken in words, that another hub on the network has this one's id; null where none has
 * @param since RFC 3339: when the hub was started, which is when it was found
 * @param unannounced what keeps the hub from being announced; null where nothing does
 */
export function hubProblems(
  { unwritable, recovered }: StoreStanding,
  idTaken: string | null,
  since: string,
  unannounced: Pick<HubProblem, 'message' | 'since'> | null = null,
): HubProblem[] {
  const problems: HubProblem[] = [];
  if (unwritable !== null) {
    const message = `The hub can't write its store, so it serves what it has from memory and starts no refresh and no pairing: ${unwritable}`;
    problems.push({ code: 'store_unwritable', message, since });
  }
  if (recovered !== null) problems.push({ code: 'store_recovered', message: sentence(recovered), since });
  if (idTaken !== null) problems.push({ code: 'hub_id_taken', message: sentence(idTaken), since });
  if (unannounced !== null) {
    const message = `Appliances can't find the hub by mDNS: ${unannounced.message}`;
    problems.push({ code: 'not_announced', message, since: unannounced.since });
  }
  return problems;
}

/**
 * What an appliance's status becomes where the store has lost its grant or its credentials, or can't be written.
 * @param appliance its id
 */
export function withStoreProblem(
  whole: ApplianceStatus,
  appliance: string,
  { unwritable, damagedGrants, damagedAppliances }: StoreStanding,
  since: string,
): ApplianceStatus {
  const damaged = whole.without_credentials === true && damagedAppliances.has(appliance);
  const status: ApplianceStatus = damaged ? { ...whole, credentials_damaged: true } : whole;
  if (status.state === 'unpaired' && damagedGrants.has(appliance)) {
    const message =
      "The hub's store was damaged where it held this grant, and there is no copy of it: a person must log in again";
    return { ...status, state: 'needs_pairing', problem: { code: 'refused', message, since } };
  }
  if (status.state === 'active' && unwritable !== null) {
    const message = `The hub can't write its store, so it starts no refresh: ${unwritable}`;
    return { ...status, state: 'retrying', problem: { code: 'store_unwritable', message, since } };
  }
  return status;
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

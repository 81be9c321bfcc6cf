import type { Backup, RestoreReport } from '../../core/administration.ts';
import type { Appliance } from '../../core/appliances/appliance.ts';
import { type BackupState, isExcludedFromBackup, type RestoredGrants } from '../../core/backup-state.ts';
import { rfc3339 } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { Secret } from '../../core/secret.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { Salvage } from '../recovery/salvage.ts';
import { type ApplianceRow, readAppliance, unreadableAppliance } from '../rows/appliance-table.ts';
import { type GrantRow, readGrant } from '../rows/grant-table.ts';
import { readSession } from '../rows/session-table.ts';
import { readSetting } from '../rows/setting-table.ts';
import type { RestoredState, SqliteStore } from '../sqlite-store.ts';
import { decryptWithPassphrase, encryptWithPassphrase, parseBackup, serializeBackup } from './backup-file.ts';

/** Copies the state and encrypts it. @param now ms since 1970 */
export async function createBackup(store: SqliteStore, passphrase: Secret, now: number): Promise<Backup> {
  const state = await captureState(store, now);
  return {
    copy: await encryptWithPassphrase(serializeBackup(state), passphrase),
    made: rfc3339(now),
    appliances: state.appliances.length,
    grants: state.grants.length,
  };
}

/** Opens a backup and puts it in place. @throws Failure `copy_unusable`, or as {@link restoreState} */
export async function restoreBackup(store: SqliteStore, copy: string, passphrase: Secret): Promise<RestoreReport> {
  const state = parseBackup(await decryptWithPassphrase(copy.trim(), passphrase));
  const restoration = await restoreState(store, state);
  return { made: rfc3339(state.made), hubId: state.settings.get('hub_id') ?? '', ...restoration };
}

/**
 * Copies the whole state of the hub, as it is at one moment.
 * @param now ms since 1970
 * @throws Failure `store_unreadable` where the hub's own settings are damaged
 */
export async function captureState(store: SqliteStore, now: number): Promise<BackupState> {
  const content = store.readAllRows();
  const settings = new Map<string, string>();
  for (const row of content.settings.values()) {
    if (!isExcludedFromBackup(row.name)) settings.set(row.name, readSetting(row, store.sealing));
  }
  const grants = readableGrantRows(content).map((row) => readGrant(row, store.sealing).grant);
  const appliances = content.appliances.map((row) => readApplianceRow(row, content, store.sealing));
  const sessions = content.sessions.map((row) => readSession(row, store.sealing));
  return { made: now, settings, appliances, grants, sessions };
}

/**
 * Puts a copy in place, all of it or nothing: what makes the hub this hub, the appliances it does not have, and each grant
 * that is newer than the one at hand, with its sessions. Appliances that the copy does not have stay.
 * @throws Failure `appliance_exists` where a name or a client_id of the copy belongs to another appliance with a grant of
 *   its own, or as the store
 */
export async function restoreState(store: SqliteStore, copy: BackupState): Promise<RestoredGrants> {
  // Without a wait in between: no grant changes after it was looked at.
  const { state, restored, kept } = planRestore(copy, store.readAllRows());
  store.applyRestoredState(state);
  return { restored, kept };
}

interface RestorePlan extends RestoredGrants {
  readonly state: RestoredState;
}

function planRestore(copy: BackupState, content: Salvage): RestorePlan {
  const own = new Map(content.appliances.map((row) => [row.id, row]));
  const atHand = new Set(readableGrantRows(content).map(({ appliance }) => appliance));
  /** Appliances that were never paired, and whose name or client_id one of the copy has. */
  const removed = new Set<string>();
  for (const appliance of copy.appliances) {
    if (own.has(appliance.id)) continue;
    for (const other of content.appliances) {
      if (other.name !== appliance.name && other.client_id !== appliance.clientId) continue;
      if (atHand.has(other.id)) throw duplicateAppliance(appliance, other);
      removed.add(other.id);
    }
  }
  const names = new Map(copy.appliances.map(({ id, name }) => [id, own.get(id)?.name ?? name]));
  const generationOf = (appliance: string) => content.grants.get(appliance)?.generation ?? 0;
  const isKept = ({ appliance, generation }: Grant) => atHand.has(appliance) && generationOf(appliance) >= generation;
  const nameOf = ({ appliance }: Grant) => names.get(appliance) ?? appliance;
  const taken = copy.grants.filter((grant) => !isKept(grant));
  const appliances = copy.appliances.filter(({ id }) => !own.has(id) || removed.has(id));
  // Where the grant at hand is kept, a session that it does not have was ended since.
  const renewed = new Set([...appliances.map(({ id }) => id), ...taken.map(({ appliance }) => appliance)]);
  return {
    state: {
      settings: copy.settings,
      appliances,
      removed,
      grants: taken.map((grant) => fromBackup(grant, generationOf(grant.appliance), copy.made)),
      sessions: copy.sessions.filter(({ appliance }) => renewed.has(appliance)),
    },
    restored: taken.map(nameOf),
    kept: copy.grants.filter(isKept).map(nameOf),
  };
}

function duplicateAppliance({ name, clientId }: Appliance, other: ApplianceRow): Failure {
  const shared = other.name === name ? 'name' : `client_id (${clientId})`;
  return new Failure(
    'appliance_exists',
    `the copy has an appliance ${name}, and this hub has another one of that ${shared} with a grant of its own: remove that first ("latchkey appliance remove ${other.name}"); nothing was changed`,
  );
}

/** The grant may have been used since the copy was made, by this hub or another one. */
function fromBackup(grant: Grant, generation: number, made: number): Grant {
  const lostAt = { boot: '', uptime: 0, wall: made };
  return {
    ...grant,
    generation: Math.max(generation + 1, grant.generation),
    doubt: grant.doubt ?? { kind: 'copy', lostAt, sends: 0 },
  };
}

function readableGrantRows({ grants, unreadable }: Salvage): GrantRow[] {
  return [...grants.values()].filter((row) => row.sealed !== null && !unreadable.has(`grants/${row.appliance}`));
}

function readApplianceRow(row: ApplianceRow, { unreadable }: Salvage, sealing: Sealing): Appliance {
  return unreadable.has(`appliances/${row.id}`) ? unreadableAppliance(row) : readAppliance(row, sealing);
}

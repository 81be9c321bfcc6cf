import type { Backup, RestoreReport } from '../../core/administration.ts';
import { type BackupContents, isExcludedFromBackup, type RestoredGrants } from '../../core/backup-contents.ts';
import { rfc3339 } from '../../core/clock.ts';
import type { Secret } from '../../core/secret.ts';
import { forEachInSlices, mapInSlices } from '../../system/slices.ts';
import { readGrant } from '../rows/grant-row.ts';
import { readSession } from '../rows/session-row.ts';
import { readSetting } from '../rows/setting-row.ts';
import { decryptWithPassphrase, encryptWithPassphrase, parseBackup, serializeBackup } from './backup-file.ts';
import type { BackupStore } from './backup-store.ts';
import { planRestore, readApplianceRow, readableGrantRows, readConnectionRow } from './restore-plan.ts';

/** Makes an encrypted backup of the state. @param now ms since 1970 */
export async function createBackup(store: BackupStore, passphrase: Secret, now: number): Promise<Backup> {
  const state = await captureState(store, now);
  return {
    copy: await encryptWithPassphrase(serializeBackup(state), passphrase),
    made: rfc3339(now),
    appliances: state.appliances.length,
    grants: state.grants.length,
  };
}

/** Decrypts a backup and restores it. @throws Failure `copy_unusable`, or as {@link restoreState} */
export async function restoreBackup(store: BackupStore, encrypted: string, passphrase: Secret): Promise<RestoreReport> {
  const state = parseBackup(await decryptWithPassphrase(encrypted.trim(), passphrase));
  const restoration = await restoreState(store, state);
  // The restore has succeeded, even if this can't be read any more.
  const hubId = (await store.settings.get('hub_id').catch(() => null)) ?? '';
  return { made: rfc3339(state.made), hubId, ...restoration };
}

/**
 * Reads the whole state of the hub, as it is at one moment.
 * @param now ms since 1970
 * @throws Failure `store_unreadable` if the hub's own settings are damaged
 */
export async function captureState(store: BackupStore, now: number): Promise<BackupContents> {
  const [content, hubId] = await Promise.all([store.readAllRowsInSlices(), store.settings.get('hub_id')]);
  // The store's key may be replaced between two slices.
  const { sealing } = content;
  const settings = new Map<string, string>();
  if (hubId !== null) settings.set('hub_id', hubId);
  await forEachInSlices(content.settings.values(), (row) => {
    if (!isExcludedFromBackup(row.name)) settings.set(row.name, readSetting(row, sealing));
  });
  const grants = await mapInSlices(readableGrantRows(content), (row) => store.translate(readGrant(row, sealing).grant));
  const connections = await mapInSlices(content.connections, (row) => readConnectionRow(row, content));
  const appliances = await mapInSlices(content.appliances, (row) => store.translate(readApplianceRow(row, content)));
  const sessions = await mapInSlices(content.sessions, (row) => store.translate(readSession(row, sealing)));
  return { made: now, settings, connections, appliances, grants, sessions };
}

/**
 * Restores a backup, all of it or nothing: the identity of the hub or the site, the connections and appliances that it
 * does not have, and each grant that is newer than the current one, with its sessions. What is not in the backup stays.
 * @throws Failure `appliance_exists` if a name or a client_id of the backup belongs to another appliance or connection
 *   that has a grant; or as {@link Store}
 */
export async function restoreState(store: BackupStore, backup: BackupContents): Promise<RestoredGrants> {
  const { restored, kept } = await store.restore((content) => planRestore(backup, content));
  return { restored, kept };
}

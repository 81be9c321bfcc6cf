import type { Backup, RestoreReport } from '../core/administration.ts';
import { rfc3339 } from '../core/rfc3339.ts';
import type { Secret } from '../core/secret.ts';
import { openWithPassphrase, readCopy, sealWithPassphrase, writeCopy } from '../store/backup-file.ts';
import type { SqliteStore } from '../store/sqlite-store.ts';
import { copyState, restoreState } from '../store/state-copies.ts';

/** Copies the state and encrypts it. @param now ms since 1970 */
export async function backUp(store: SqliteStore, passphrase: Secret, now: number): Promise<Backup> {
  const state = await copyState(store, now);
  return {
    copy: await sealWithPassphrase(writeCopy(state), passphrase),
    made: rfc3339(now),
    appliances: state.appliances.length,
    grants: state.grants.length,
  };
}

/** Opens a backup and puts it in place. @throws Failure `copy_unusable`, or as {@link restoreState} */
export async function restore(store: SqliteStore, copy: string, passphrase: Secret): Promise<RestoreReport> {
  const state = readCopy(await openWithPassphrase(copy.trim(), passphrase));
  const restoration = await restoreState(store, state);
  return { made: rfc3339(state.made), hub_id: state.settings.get('hub_id') ?? '', ...restoration };
}

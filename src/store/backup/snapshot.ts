import { renameSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs';
import { Failure } from '../../core/failure.ts';
import { openInMemory, toStoreFailure } from '../database/database.ts';
import { BALLAST_BYTES, fileSize, fsyncPath, readFileOrNull } from '../database/store-files.ts';
import { salvage } from '../recovery/salvage.ts';
import type { SqliteStore } from '../sqlite-store.ts';

/**
 * Copies the database beside itself, in place of the copy before: that is what is used when the database is damaged one
 * day. The copy is read again, every row of it, before it takes that place.
 * @throws Failure `store_unwritable` where there is no room for it, or none would be left for the answers of refreshes;
 *   `store_unreadable` where something in it is damaged. The copy before is kept then.
 */
export async function writeSnapshot(store: SqliteStore): Promise<void> {
  const { files } = store;
  const draft = `${files.snapshot}.new`;
  try {
    checkDiskSpace(store);
    // Made beforehand, because SQLite would let others read it.
    writeFileSync(draft, '', { mode: 0o600 });
    await store.copyDatabase(draft);
    const snapshot = readFileOrNull(draft);
    using stack = new DisposableStack();
    const database = stack.adopt(openInMemory(snapshot?.bytes ?? Buffer.alloc(0), draft), (open) => open.close());
    const { damage, unreadable } = salvage(database, [store.sealing]);
    if (damage !== null || unreadable.size > 0) {
      const what = damage ?? `${unreadable.size} of its rows can't be read`;
      throw new Failure('store_unreadable', `no copy is made of the store ${files.database}: it is damaged (${what})`);
    }
    renameSync(draft, files.snapshot);
    fsyncPath(files.directory);
  } catch (error) {
    throw toStoreFailure(error, files.snapshot);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** A copy must not take the room that answers of refreshes need: that of the ballast, and as much again. */
function checkDiskSpace({ files }: SqliteStore): void {
  const { bavail, bsize } = statfsSync(files.directory);
  const snapshot = (fileSize(files.database) ?? 0) + (fileSize(files.wal) ?? 0);
  const ballast = fileSize(files.ballast) === BALLAST_BYTES ? 0 : BALLAST_BYTES;
  if (bavail * bsize >= snapshot + ballast + BALLAST_BYTES) return;
  throw new Failure(
    'store_unwritable',
    `the disk has no room for a daily copy of the store ${files.database}: make room`,
  );
}

/** Whether the copy opens with the store's present key; false where none can be read. */
export function canOpenSnapshot({ files, sealing }: SqliteStore): boolean {
  const snapshot = readFileOrNull(files.snapshot);
  if (snapshot === null) return false;
  try {
    using stack = new DisposableStack();
    const database = stack.adopt(openInMemory(snapshot.bytes, files.snapshot), (open) => open.close());
    return salvage(database, [sealing]).openedCount > 0;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

/** When the copy was made, in ms since 1970; null where there is none. */
export function snapshotTime(store: SqliteStore): number | null {
  return statSync(store.files.snapshot, { throwIfNoEntry: false })?.mtimeMs ?? null;
}

import { statfsSync, statSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import { Failure } from '../../core/failure.ts';
import { BALLAST_BYTES, fileSize, readFileOrNull, syncPath } from '../store-files.ts';
import { openInMemory, toStoreFailure } from './database.ts';
import { salvage, salvageInSlices } from './recovery/salvage.ts';
import type { SqliteStore } from './sqlite-store.ts';

/**
 * Replaces the snapshot, which is used if the database is damaged later. Every row of the new snapshot is read before
 * it replaces the previous one.
 * @throws Failure `store_unwritable` if there is no room for it, or none would be left for the responses to refreshes;
 *   `store_unreadable` if something in it is damaged. The previous snapshot is kept then.
 */
export async function writeSnapshot(store: SqliteStore): Promise<void> {
  const { files } = store;
  const draft = `${files.snapshot}.new`;
  try {
    checkDiskSpace(store);
    const bytes = await store.serialize();
    await checkReadable(bytes, store);
    await writeFile(draft, bytes, { mode: 0o600, flush: true });
    await rename(draft, files.snapshot);
    await syncPath(files.directory);
  } catch (error) {
    throw toStoreFailure(error, files.snapshot);
  } finally {
    await rm(draft, { force: true });
  }
}

/** @throws Failure `store_unreadable` if a database is damaged, or a row of it can't be read */
async function checkReadable(bytes: Uint8Array, { files, sealing }: SqliteStore): Promise<void> {
  using stack = new DisposableStack();
  const database = stack.adopt(openInMemory(bytes, files.database), (open) => open.close());
  const { damage, unreadable } = await salvageInSlices(database, sealing);
  if (damage === null && unreadable.size === 0) return;
  const what = damage ?? `${unreadable.size} of its rows can't be read`;
  throw new Failure('store_unreadable', `no snapshot was made of the store ${files.database}: it is damaged (${what})`);
}

/** A snapshot must not take the room that the responses to refreshes need: the ballast, and as much again. */
function checkDiskSpace({ files }: SqliteStore): void {
  const { bavail, bsize } = statfsSync(files.directory);
  const snapshot = (fileSize(files.database) ?? 0) + (fileSize(files.wal) ?? 0);
  const ballast = fileSize(files.ballast) === BALLAST_BYTES ? 0 : BALLAST_BYTES;
  if (bavail * bsize >= snapshot + ballast + BALLAST_BYTES) return;
  throw new Failure(
    'store_unwritable',
    `the disk has no room for a snapshot of the store ${files.database}: make room`,
  );
}

/** Whether the store's current key opens the snapshot; false if there is no readable one. */
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

/** When the snapshot was made, in ms since 1970; null if there is none. */
export function snapshotTime(store: SqliteStore): number | null {
  return statSync(store.files.snapshot, { throwIfNoEntry: false })?.mtimeMs ?? null;
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { messageOf } from '../../core/failure.ts';
import { copyStoreFiles, fileSize, storeFiles } from '../database/store-files.ts';

/** Whether a store can be read to its end. */
export type IntegrityResult =
  | { readonly kind: 'absent' }
  | { readonly kind: 'whole' }
  | { readonly kind: 'damaged'; readonly reason: string };

/**
 * Looks at a copy of a store that no hub has open, so that nothing of the store is touched, its journal neither.
 * @throws the file system's error where it can't be read or copied
 */
export function checkIntegrity(directory: string): IntegrityResult {
  const files = storeFiles(directory);
  if (fileSize(files.database) === null) return { kind: 'absent' };
  const scratch = mkdtempSync(join(tmpdir(), 'latchkey-doctor-'));
  try {
    return quickCheck(copyStoreFiles(files, scratch).database);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function quickCheck(path: string): IntegrityResult {
  try {
    const database = new Database(path);
    try {
      const said = String(database.pragma('quick_check(1)', { simple: true }));
      return said === 'ok' ? { kind: 'whole' } : { kind: 'damaged', reason: said.split('\n')[0] ?? said };
    } finally {
      database.close();
    }
  } catch (error) {
    return { kind: 'damaged', reason: messageOf(error) };
  }
}

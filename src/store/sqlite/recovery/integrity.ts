import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { messageOf } from '../../../core/failure.ts';
import { copyStoreFiles, fileSize, storeFiles } from '../../store-files.ts';

/** Whether a store can be read completely. */
type IntegrityResult =
  | { readonly kind: 'absent' }
  | { readonly kind: 'whole' }
  | { readonly kind: 'damaged'; readonly reason: string };

/**
 * Checks a copy of a store that no hub has open, so that neither the store nor its WAL is touched.
 * @throws the file system's error if the store can't be read or copied
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
      const result = String(database.pragma('quick_check(1)', { simple: true }));
      return result === 'ok' ? { kind: 'whole' } : { kind: 'damaged', reason: result.split('\n')[0] ?? result };
    } finally {
      database.close();
    }
  } catch (error) {
    return { kind: 'damaged', reason: messageOf(error) };
  }
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { messageOf } from '../../core/failure.ts';
import { copyTo, sizeOf, storeFiles } from '../database/store-files.ts';

/** Whether a store can be read to its end. */
export type Integrity =
  | { readonly kind: 'absent' }
  | { readonly kind: 'whole' }
  | { readonly kind: 'damaged'; readonly why: string };

/**
 * Looks at a copy of a store that no hub has open, so that nothing of the store is touched, its journal neither.
 * @throws the file system's error where it can't be read or copied
 */
export function integrityOf(directory: string): Integrity {
  const files = storeFiles(directory);
  if (sizeOf(files.database) === null) return { kind: 'absent' };
  const scratch = mkdtempSync(join(tmpdir(), 'latchkey-doctor-'));
  try {
    return judged(copyTo(files, scratch).database);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function judged(path: string): Integrity {
  try {
    const database = new Database(path);
    try {
      const said = String(database.pragma('quick_check(1)', { simple: true }));
      return said === 'ok' ? { kind: 'whole' } : { kind: 'damaged', why: said.split('\n')[0] ?? said };
    } finally {
      database.close();
    }
  } catch (error) {
    return { kind: 'damaged', why: messageOf(error) };
  }
}

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The number of transactions and pages in the WAL of a store: https://sqlite.org/fileformat.html, "The Write-Ahead Log".
 * Correct only until a checkpoint moves the WAL into the database.
 */
export function readWal(path: string): { readonly commits: number; readonly pages: number } {
  const journal = readFileSync(join(path, 'latchkey.db-wal'));
  if (journal.length === 0) return { commits: 0, pages: 0 };
  const frame = 24 + journal.readUInt32BE(8);
  const salts = journal.subarray(16, 24);
  let [commits, pages] = [0, 0];
  for (let at = 32; at + frame <= journal.length && salts.equals(journal.subarray(at + 8, at + 16)); at += frame) {
    pages += 1;
    if (journal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return { commits, pages };
}

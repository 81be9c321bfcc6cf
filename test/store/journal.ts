import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * How many transactions the journal of a store holds, and in how many pages: https://sqlite.org/fileformat.html, "The
 * Write-Ahead Log". Right as long as the journal has not been moved to the database.
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

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The number of transactions and pages in the WAL of a store: https://sqlite.org/fileformat.html, "The Write-Ahead Log".
 * Correct only until a checkpoint moves the WAL into the database.
 */
export function readWal(path: string): { readonly commits: number; readonly pages: number } {
  const wal = readFileSync(join(path, 'latchkey.db-wal'));
  if (wal.length === 0) return { commits: 0, pages: 0 };
  const frame = 24 + wal.readUInt32BE(8);
  const salts = wal.subarray(16, 24);
  let [commits, pages] = [0, 0];
  for (
    let offset = 32;
    offset + frame <= wal.length && salts.equals(wal.subarray(offset + 8, offset + 16));
    offset += frame
  ) {
    pages += 1;
    if (wal.readUInt32BE(offset + 4) > 0) commits += 1;
  }
  return { commits, pages };
}

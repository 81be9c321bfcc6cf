import { link, open, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a file that only its owner can read, completely or not at all, also in a power cut.
 * @throws the file system's error, `EEXIST` if there is a file: it is never overwritten
 */
export async function writeNewFileAtomically(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  await writeFile(draft, text, { mode: 0o600, flush: true });
  await link(draft, path);
  await unlink(draft);
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory survive a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path);
  await directory.sync();
}

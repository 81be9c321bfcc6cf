import { link, open, unlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Reads a text file of limited size. A device or a pipe that never ends counts as too large.
 * @throws RangeError if there are more than `maxBytes`, or as the file system
 */
export async function readBoundedFile(path: string, maxBytes: number): Promise<string> {
  await using file = await open(path, 'r');
  const pieces: Buffer[] = [];
  for (let length = 0; ; ) {
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(65_536) });
    if (bytesRead === 0) return Buffer.concat(pieces).toString('utf8');
    length += bytesRead;
    if (length > maxBytes) throw new RangeError(`it is larger than ${maxBytes} bytes`);
    pieces.push(buffer.subarray(0, bytesRead));
  }
}

/** Why a file without secrets can't be read, and what to do. The message fits after a key's name. */
export function unreadableFileMessage(path: string, error: NodeJS.ErrnoException): string {
  if (error.code === 'ENOENT') return `${path} does not exist`;
  return `${path} can't be read (${error.message})${error.code === 'EACCES' ? `: sudo chmod 644 ${path}` : ''}`;
}

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

import { open } from 'node:fs/promises';

/**
 * Reads a text file of a bounded size; a device or a pipe that never ends is one that is too large.
 * @param most bytes
 * @throws RangeError where there is more, or as the file system
 */
export async function readBoundedFile(path: string, most: number): Promise<string> {
  await using file = await open(path, 'r');
  const pieces: Buffer[] = [];
  for (let length = 0; ; ) {
    const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(65_536) });
    if (bytesRead === 0) return Buffer.concat(pieces).toString('utf8');
    length += bytesRead;
    if (length > most) throw new RangeError(`it is larger than ${most} bytes`);
    pieces.push(buffer.subarray(0, bytesRead));
  }
}

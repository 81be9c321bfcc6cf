import { open } from 'node:fs/promises';

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

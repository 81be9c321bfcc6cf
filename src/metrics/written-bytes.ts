import { readFile } from 'node:fs/promises';

/** How many bytes this process has had written to disks (proc(5), `/proc/self/io`); null where that can't be known. */
export async function writtenBytes(): Promise<number | null> {
  const text = await readFile('/proc/self/io', 'ascii').catch(() => '');
  const [, bytes] = /^write_bytes: (\d+)$/m.exec(text) ?? [];
  return bytes === undefined ? null : Number(bytes);
}

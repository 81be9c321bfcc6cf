import { readFileSync } from 'node:fs';
import { type Call, callsDuring } from '../../../test/chaos/system-calls.ts';

/** The calls by which anything of a file comes to the kernel, or from there to the disk. */
const SYNCS = ['fsync', 'fdatasync', 'sync_file_range', 'syncfs', 'msync'];
const WRITES = ['write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'ftruncate', 'fallocate'];

/** What a process has done to the files of a folder, and to whatever disk. */
export interface Written {
  /** Each time the process waits until what it has written is on the disk. */
  readonly syncs: number;
  readonly writes: number;
  /** Bytes that were handed to the kernel. */
  readonly bytes: number;
  /** Bytes of the blocks that these make the kernel write, as `/proc/PID/io` counts them: a block of 4 KiB each time. */
  readonly blocks: number;
  /** Bytes that came to a disk of its own, where it has one: with what the file system notes in its journal. */
  readonly onDisk?: number;
}

/** What a process writes below a folder while `work` goes on, call by call. */
export async function writtenDuring(
  pid: number,
  folder: string,
  work: () => Promise<unknown>,
): Promise<Written & { readonly calls: readonly Call[] }> {
  let blocks = 0;
  const calls = await callsDuring(pid, [...SYNCS, ...WRITES], async () => {
    const before = blocksOf(pid);
    await work();
    blocks = blocksOf(pid) - before;
  });
  const onFiles = calls.filter(({ on }) => on.startsWith(folder));
  return { ...sumOf(onFiles), blocks, calls: onFiles };
}

/** What these calls come to. */
export function sumOf(calls: readonly Call[]): Pick<Written, 'syncs' | 'writes' | 'bytes'> {
  const syncs = calls.filter(({ name }) => SYNCS.includes(name)).length;
  return { syncs, writes: calls.length - syncs, bytes: calls.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function blocksOf(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

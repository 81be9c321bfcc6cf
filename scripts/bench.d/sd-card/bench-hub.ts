import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { startEmulator } from '../../../src/emulator/index.ts';
import { type SystemCall, traceSystemCalls } from '../../../test/chaos/system-calls.ts';
import { SmallDisk } from '../../../test/reliability/small-disk.ts';
import { FaultyPortal } from '../../../test/support/faulty-portal.ts';
import { eventually, type HubProcess } from '../../../test/support/hub-process.ts';

/** The system calls that pass file data to the kernel, or from there to the disk. */
const SYNCS = ['fsync', 'fdatasync', 'sync_file_range', 'syncfs', 'msync'];
const WRITES = ['write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'ftruncate', 'fallocate'];

/** The writes of a process to the files of a folder. */
export interface WriteStatistics {
  /** How often the process waited until its writes were on the disk. */
  readonly syncs: number;
  readonly writes: number;
  /** Bytes that were passed to the kernel. */
  readonly bytes: number;
  /** Bytes of the 4 KiB blocks that the kernel has to write, as `/proc/PID/io` counts them. */
  readonly blocks: number;
  /** Bytes that reached a separate disk, if there is one; they include the file system's journal. */
  readonly onDisk?: number;
}

/** A hub with appliances, whose disk writes are traced. */
export interface SdCardBench extends AsyncDisposable {
  /** Traces its writes to the state directory, or to the disk, during `work`. */
  watched(work: () => Promise<unknown>): Promise<WriteStatistics & { readonly calls: readonly SystemCall[] }>;
  /** Refreshes each appliance once, one after another. @returns how many */
  refreshEach(): Promise<number>;
  /** Refreshes all appliances at once. @returns how many */
  refreshTogether(): Promise<number>;
  /** Requests tokens, one after another. */
  handOut(times: number): Promise<void>;
  /** Pairs the first appliance again, and waits for the snapshot that follows. */
  pair(): Promise<void>;
}

/**
 * Starts a portal and a hub, and pairs appliances.
 * @param prepare prepares a hub for a portal
 * @param longer additional characters of the portal's tokens; the emulator's have 81
 * @param onDisk whether its state is on a separate disk, if this user may mount one
 */
export async function startSdCardBench(
  prepare: (portal: Parameters<typeof HubProcess.prepare>[0]) => Promise<HubProcess>,
  appliances: number,
  { longer = 0, onDisk = false } = {},
): Promise<SdCardBench> {
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startEmulator());
  const portal = parts.use(await FaultyPortal.start(emulator));
  portal.tokenPadding = longer;
  const { baseUrl, frontendUrl } = portal;
  const { clientId, clientSecret } = emulator;
  const hub = parts.use(await prepare({ emulator: { baseUrl, frontendUrl, clientId, clientSecret } }));
  const disk = onDisk ? SmallDisk.mount(hub, 'ext4') : null;
  if (disk !== null) parts.use(disk);
  await hub.launch();
  const members: CredentialsResponse[] = [];

  const snapshots = () => readFileSync(hub.log, 'utf8').split('"snapshot_written"').length;
  async function newSnapshot(before: number): Promise<void> {
    await eventually(async () => snapshots() > before);
  }
  async function pair(name: string): Promise<void> {
    const before = snapshots();
    await hub.pair(name, emulator);
    await newSnapshot(before);
  }
  async function refresh(name: string): Promise<void> {
    const { state, problem } = await hub.ask((control) => control.refresh(name));
    if (state !== 'active') throw new Error(`${name} is ${state}: ${problem?.message}`);
  }
  await newSnapshot(1);
  for (let number = 1; number <= appliances; number += 1) {
    members.push(await hub.addAppliance(`appliance-${number}`));
    await pair(`appliance-${number}`);
  }
  const running = parts.move();
  return {
    async watched(work) {
      const before = disk?.written;
      const written = await writtenDuring(hub.pid, join(hub.directory, 'state'), work);
      return before === undefined ? written : { ...written, onDisk: (disk?.written ?? Number.NaN) - before };
    },
    async refreshEach() {
      for (const { name } of members) await refresh(name);
      return members.length;
    },
    async refreshTogether() {
      await Promise.all(members.map(({ name }) => refresh(name)));
      return members.length;
    },
    async handOut(times) {
      for (let count = 0; count < times; count += 1) {
        const [member] = members;
        if (member === undefined) throw new Error('there is no appliance');
        const { status } = await hub.requestToken(member);
        if (status !== 200) throw new Error(`a token request got the status ${status}`);
      }
    },
    pair: () => pair(members[0]?.name ?? ''),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

/** Traces the writes of a process below a folder during `work`. */
async function writtenDuring(
  pid: number,
  folder: string,
  work: () => Promise<unknown>,
): Promise<WriteStatistics & { readonly calls: readonly SystemCall[] }> {
  let blocks = 0;
  const calls = await traceSystemCalls(pid, [...SYNCS, ...WRITES], async () => {
    const before = blocksOf(pid);
    await work();
    blocks = blocksOf(pid) - before;
  });
  const onFiles = calls.filter(({ on }) => on.startsWith(folder));
  return { ...sumCalls(onFiles), blocks, calls: onFiles };
}

/** Sums up traced calls. */
export function sumCalls(calls: readonly SystemCall[]): Pick<WriteStatistics, 'syncs' | 'writes' | 'bytes'> {
  const syncs = calls.filter(({ name }) => SYNCS.includes(name)).length;
  return { syncs, writes: calls.length - syncs, bytes: calls.reduce((sum, { bytes }) => sum + bytes, 0) };
}

function blocksOf(pid: number): number {
  return Number(/^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]);
}

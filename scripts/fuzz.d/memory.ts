import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { slope } from '../../test/chaos/soak-statistics.ts';

/** Requests per part of a run. The memory is measured after each part. */
export const REQUESTS_PER_PART = 5_000;

/** Resident memory and the heap after a full collection, in MB. */
export interface MemoryUsage {
  readonly resident: number;
  readonly heap: number;
}

/**
 * The permitted growth of the heap in 100,000 requests, in MB. Remembered entries differ in size, and V8 keeps compiled
 * code and free lists. A leak of 20 bytes per request is 2 MB.
 */
const HEAP_BOUND = 2;
/** The same for the resident memory, which also depends on the free pages that the allocator and V8 keep. */
const RESIDENT_BOUND = 10;
/** Parts that a meaningful slope needs: 200,000 requests. */
const MIN_PARTS = 40;

/** The growth of the memory in 100,000 requests over the second half of a run, in MB; null if the run was too short. */
export function memoryGrowth(memory: readonly MemoryUsage[]): MemoryUsage | null {
  if (memory.length < MIN_PARTS) return null;
  const half = memory.slice(Math.floor(memory.length / 2));
  const of = (kind: keyof MemoryUsage) =>
    slope(half.map((one, part) => ({ minutes: (part * REQUESTS_PER_PART) / 100_000, value: one[kind] })));
  return { resident: of('resident'), heap: of('heap') };
}

/** What is wrong with the memory, or null. */
export function memoryProblem(memory: readonly MemoryUsage[]): string | null {
  const { resident, heap } = memoryGrowth(memory) ?? { resident: 0, heap: 0 };
  if (resident <= RESIDENT_BOUND && heap <= HEAP_BOUND) return null;
  return `in 100,000 requests the heap grows by ${heap.toFixed(2)} MB (limit: ${HEAP_BOUND}), the resident memory by ${resident.toFixed(2)} MB (limit: ${RESIDENT_BOUND})`;
}

/** Environment variables that make a hub write its memory usage to a file. */
export function memoryProbeEnv(file: string): Readonly<Record<string, string>> {
  const probe = new URL('../../test/chaos/soak-probe.ts', import.meta.url);
  return { NODE_OPTIONS: `--import=${probe}`, LATCHKEY_TEST_HEAP: file };
}

/** Reads the newest memory usage from the file of {@link memoryProbeEnv}. */
export async function readMemory(file: string): Promise<MemoryUsage> {
  while (!existsSync(file)) await sleep(100);
  const newest = readFileSync(file, 'utf8').trim().split('\n').at(-1) ?? '';
  const [used = 0, , external = 0, resident = 0] = newest.split(' ').map((bytes) => Number(bytes) / 2 ** 20);
  return { resident, heap: used + external };
}

export function memoryText({ resident, heap }: MemoryUsage): string {
  return `${resident.toFixed(0)} MB resident, heap ${heap.toFixed(1)} MB`;
}

import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

/** Requests of a part of a run; the memory is measured after each. */
export const PART = 5_000;

/** Resident memory and the heap after garbage collection, in MB; the heap is null where it can't be asked for. */
export interface Memory {
  readonly resident: number;
  readonly heap: number | null;
}

/**
 * MB that the heap, after garbage collection, may grow in 100,000 requests. What is remembered is full before the run,
 * so nothing has to grow; entries differ in size, and V8 keeps compiled code and free lists. A leak of 20 bytes a
 * request is 2 MB.
 */
const HEAP_BOUND = 2;
/** The same for the resident memory, which also moves with how the allocator and V8 hold on to free pages. */
const RESIDENT_BOUND = 10;
/** Parts before a slope says anything: 200,000 requests. */
const ENOUGH = 40;

/** How much memory grew in 100,000 requests, over the second half of the run, in MB. */
export interface Growth {
  readonly resident: number;
  readonly heap: number;
}

export function growth(memory: readonly Memory[]): Growth {
  const half = memory.slice(Math.floor(memory.length / 2));
  return {
    resident: slope(half.map(({ resident }) => resident)),
    heap: slope(half.map(({ heap }) => heap ?? 0)),
  };
}

/** Whether a run of so many requests is long enough to judge its memory. */
export function judgesMemory(requests: number): boolean {
  return requests >= ENOUGH * PART;
}

/** What is wrong with the memory, or null. */
export function grows(memory: readonly Memory[]): string | null {
  const { resident, heap } = growth(memory);
  if (memory.length < ENOUGH || (resident <= RESIDENT_BOUND && heap <= HEAP_BOUND)) return null;
  return `in 100,000 requests the heap grows by ${heap.toFixed(2)} MB (bound: ${HEAP_BOUND}), the resident memory by ${resident.toFixed(2)} MB (bound: ${RESIDENT_BOUND})`;
}

/** Of the line that fits best, in 100,000 requests. */
function slope(values: readonly number[]): number {
  const middle = (values.length - 1) / 2;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const above = values.reduce((sum, value, index) => sum + (index - middle) * (value - mean), 0);
  const below = values.reduce((sum, _, index) => sum + (index - middle) ** 2, 0);
  return below === 0 ? 0 : ((above / below) * 100_000) / PART;
}

/** In the abstract namespace of Linux: it leaves no file. */
const HEAP_SOCKET = `latchkey-fuzz-heap.${process.pid}`;

/** What a program is started with, so that its heap can be measured. As an address, which has no spaces. */
export const PROBE = {
  flags: ['--expose-gc', '--import', new URL('heap-probe.ts', import.meta.url).href],
  env: { FUZZ_HEAP_SOCKET: HEAP_SOCKET },
} as const;

/** Of a process on Linux. @param probed whether it was started with {@link PROBE} */
export async function memoryOf(pid: number, probed: boolean): Promise<Memory> {
  const resident = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  if (!probed) return { resident, heap: null };
  let said = '';
  for await (const piece of connect(`\0${HEAP_SOCKET}`)) said += String(piece);
  return { resident, heap: Number(said) / 2 ** 20 };
}

export function memoryText({ resident, heap }: Memory): string {
  return `${resident.toFixed(0)} MB resident${heap === null ? '' : `, heap ${heap.toFixed(1)} MB`}`;
}

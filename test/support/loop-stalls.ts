import { existsSync, readFileSync } from 'node:fs';

/** Shorter delays of the event loop are not recorded, in ms. */
export const MIN_STALL_MS = 5;

/** A time in which a daemon's event loop handled nothing else. */
export interface Stall {
  /** When it began, in ms since 1970. */
  readonly at: number;
  readonly ms: number;
  /**
   * How much of it the main thread ran on a processor, and how much it waited for one. In the rest it waited for the disk
   * or for memory, or the whole machine stood still.
   */
  readonly cpu: number;
  readonly waiting: number;
  /** The functions that ran longest, each with its callers and its time in ms. */
  readonly cause: string;
}

/** Records the stalls of a daemon in a file, see {@link readStalls}. @returns its options for Node, and its environment */
export function recordStalls(file: string): {
  readonly options: string;
  readonly env: Readonly<Record<string, string>>;
} {
  return {
    options: `--import=${new URL('./loop-stalls-preload.ts', import.meta.url)}`,
    env: { LATCHKEY_TEST_STALLS: file },
  };
}

/** The recorded stalls. They are written up to five seconds later, and when the daemon exits. */
export function readStalls(file: string): Stall[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line): Stall => JSON.parse(line));
}

import { access, constants, statfs } from 'node:fs/promises';
import type { Grants } from '../broker/grants/grants.ts';
import type { Timers } from '../core/clock.ts';

/** How often it is looked for room while something can't be written, in ms. */
const CHECK_INTERVAL = 3000;
/** Bytes with which the store can be written. */
const MIN_FREE_BYTES = 1 << 20;

/**
 * Looks whether there is room on the disk again, as long as a refresh waits for that: its own tries are minutes apart by then, and all
 * that time people would be told of a full disk that they have cleared.
 */
export class DiskSpaceMonitor implements AsyncDisposable {
  readonly #directory: string;
  readonly #timers: Timers;
  readonly #grants: Pick<Grants, 'hasStoreFailure' | 'onStoreWritable'>;
  readonly #stopped = new AbortController();
  #monitoring: Promise<void> | null = null;

  /** @param directory the store's */
  constructor(directory: string, timers: Timers, grants: Pick<Grants, 'hasStoreFailure' | 'onStoreWritable'>) {
    this.#directory = directory;
    this.#timers = timers;
    this.#grants = grants;
  }

  /** Begins to look where something waits for room. */
  startIfNeeded(): void {
    if (this.#monitoring !== null || !this.#grants.hasStoreFailure || this.#stopped.signal.aborted) return;
    this.#monitoring = this.#waitForSpace().finally(() => {
      this.#monitoring = null;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#monitoring;
  }

  async #waitForSpace(): Promise<void> {
    const { signal } = this.#stopped;
    // What fails though there is room is none of this: the tries go on by themselves.
    for (let had = await this.#hasFreeSpace(); this.#grants.hasStoreFailure; ) {
      await this.#timers.sleep(CHECK_INTERVAL, signal);
      if (signal.aborted) return;
      const has = await this.#hasFreeSpace();
      if (has && !had) this.#grants.onStoreWritable();
      had = has;
    }
  }

  async #hasFreeSpace(): Promise<boolean> {
    try {
      await access(this.#directory, constants.W_OK);
      const { bavail, bsize } = await statfs(this.#directory);
      return bavail * bsize >= MIN_FREE_BYTES;
    } catch {
      return false;
    }
  }
}

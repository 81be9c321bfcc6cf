import { access, constants, statfs } from 'node:fs/promises';
import type { Grants } from '../broker/grants/grants.ts';
import type { Timers } from '../core/clock.ts';

/** How often free space is checked while something can't be written, in ms. */
const CHECK_INTERVAL = 3000;
/** Free bytes with which the store can be written. */
const MIN_FREE_BYTES = 1 << 20;

/**
 * Checks whether the disk has free space again, as long as a refresh waits for it. The retries of the refresh are
 * minutes apart by then, and meanwhile people would still see the problem of a full disk that they have solved.
 */
export class DiskSpaceMonitor implements AsyncDisposable {
  readonly #directory: string;
  readonly #timers: Timers;
  readonly #grants: Pick<Grants, 'hasStoreFailure' | 'onStoreWritable'>;
  readonly #stopped = new AbortController();
  #monitoring: Promise<void> | null = null;

  /** @param directory of the store */
  constructor(directory: string, timers: Timers, grants: Pick<Grants, 'hasStoreFailure' | 'onStoreWritable'>) {
    this.#directory = directory;
    this.#timers = timers;
    this.#grants = grants;
  }

  /** Starts the checks if a refresh waits for free space. */
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
    // A write that fails although there is free space is not handled here: the refresh retries it.
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

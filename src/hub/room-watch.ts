import { access, constants, statfs } from 'node:fs/promises';
import type { Grants } from '../broker/grants/grants.ts';
import type { Timers } from '../core/clock.ts';

/** How often it is looked for room while something can't be written, in ms. */
const INTERVAL = 3000;
/** Bytes with which the store can be written. */
const ENOUGH = 1 << 20;

/**
 * Looks whether there is room on the disk again, as long as a refresh waits for that: its own tries are minutes apart by then, and all
 * that time people would be told of a full disk that they have cleared.
 */
export class RoomWatch implements AsyncDisposable {
  readonly #directory: string;
  readonly #timers: Timers;
  readonly #grants: Pick<Grants, 'areUnwritable' | 'roomMade'>;
  readonly #stopped = new AbortController();
  #run: Promise<void> | null = null;

  /** @param directory the store's */
  constructor(directory: string, timers: Timers, grants: Pick<Grants, 'areUnwritable' | 'roomMade'>) {
    this.#directory = directory;
    this.#timers = timers;
    this.#grants = grants;
  }

  /** Begins to look where something waits for room. */
  look(): void {
    if (this.#run !== null || !this.#grants.areUnwritable || this.#stopped.signal.aborted) return;
    this.#run = this.#watch().finally(() => {
      this.#run = null;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    await this.#run;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopped;
    // What fails though there is room is none of this: the tries go on by themselves.
    for (let had = await this.#hasRoom(); this.#grants.areUnwritable; ) {
      await this.#timers.sleep(INTERVAL, signal);
      if (signal.aborted) return;
      const has = await this.#hasRoom();
      if (has && !had) this.#grants.roomMade();
      had = has;
    }
  }

  async #hasRoom(): Promise<boolean> {
    try {
      await access(this.#directory, constants.W_OK);
      const { bavail, bsize } = await statfs(this.#directory);
      return bavail * bsize >= ENOUGH;
    } catch {
      return false;
    }
  }
}

import { rmSync, statSync, writeFileSync } from 'node:fs';

/** Bytes: room for the answers to some twenty refreshes that are under way when the disk fills up. */
export const BALLAST_SIZE = 256 * 1024;

/** A file that only holds room on the disk: given up when the answer to a refresh finds no other. */
export class Ballast {
  readonly #path: string;
  #kept: boolean;

  /** @param path the file; one that an earlier run left is taken over */
  constructor(path: string) {
    this.#path = path;
    this.#kept = statSync(path, { throwIfNoEntry: false })?.size === BALLAST_SIZE;
  }

  /**
   * Makes the file, where it is not there yet or was given up.
   * @throws the file system's error, where there is no room for it
   */
  keep(): void {
    if (this.#kept) return;
    try {
      writeFileSync(this.#path, Buffer.alloc(BALLAST_SIZE), { mode: 0o600, flush: true });
      this.#kept = true;
    } catch (error) {
      this.giveUp();
      throw error;
    }
  }

  /** Makes room. */
  giveUp(): void {
    this.#kept = false;
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // On a disk that can't be written nothing is gained.
    }
  }
}

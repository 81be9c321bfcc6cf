import type { Store } from '../../core/store.ts';

/** Keeps the records that this hub has in memory in step with those of the store, which the hubs of a site share. */
export class SharedRecords {
  readonly #store: Pick<Store, 'catchUp'>;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(store: Pick<Store, 'catchUp'>) {
    this.#store = store;
  }

  /**
   * Runs work that writes or reads the records of the store and then applies them in memory, one at a time, so
   * that what was read is never applied after something newer. The work must not wait for news.
   */
  exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /**
   * Tries a change of the store. If it is refused on a site, it is tried again from the current records, because
   * another hub may have been faster.
   * @param attempt resolves with null if the change is refused
   * @returns null if it is refused all the same
   */
  async retryOnce<Result>(attempt: () => Promise<Result | null>): Promise<Result | null> {
    const result = await attempt();
    return result === null && (await this.#store.catchUp()) ? attempt() : result;
  }
}

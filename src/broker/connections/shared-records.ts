import type { SiteStore } from '../../core/site.ts';

/**
 * Keeps the records that this hub has in memory in step with those that the hubs of a site share. Without a site
 * nothing else changes them, so everything runs at once.
 */
export class SharedRecords {
  readonly #site: SiteStore | null;
  #queue: Promise<unknown> = Promise.resolve();

  /** @param site null for a hub that is alone */
  constructor(site: SiteStore | null) {
    this.#site = site;
  }

  /**
   * Runs work that writes or reads the records of the store and then applies them in memory. On a site one at a time,
   * so that what was read is never applied after something newer. The work must not wait for news.
   */
  exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#site === null) return work();
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
    if (result !== null || this.#site === null) return result;
    await this.#site.catchUp();
    return attempt();
  }
}

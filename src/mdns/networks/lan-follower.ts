import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';

/** Who follows the hub's address on the home network. */
export interface LanFollowerOptions {
  /** The address as it is now; null while there is none. */
  address(): string | null;
  /**
   * What is done after a change, in this order.
   * @param moved whether the hub is to be reached at another address than before, and not only by another one as well
   */
  readonly steps: readonly ((moved: boolean) => unknown)[];
  readonly log: Log;
}

/**
 * Has the hub's parts follow its address: one change after the other, and where several come meanwhile only what is there in the
 * end. A part that fails keeps none of the others from following.
 */
export class LanFollower implements Disposable {
  readonly #options: LanFollowerOptions;
  #followed: string | null;
  /** Whether a change waits to be followed. */
  #waiting = false;
  #ended = false;
  #work: Promise<void> = Promise.resolve();

  constructor(options: LanFollowerOptions) {
    this.#options = options;
    this.#followed = options.address();
  }

  /** The address, or another one that the hub has as well, has changed. */
  changed(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    this.#work = this.#work.then(() => this.#follow());
  }

  /** Follows no further: who says goodbye must not be announced again. */
  [Symbol.dispose](): void {
    this.#ended = true;
  }

  async #follow(): Promise<void> {
    this.#waiting = false;
    const { log, steps } = this.#options;
    const address = this.#options.address();
    const moved = address !== this.#followed;
    this.#followed = address;
    if (this.#ended) return;
    if (moved) log.info('address_changed', { address });
    for (const step of steps) {
      if (this.#ended) return;
      try {
        await step(moved);
      } catch (error) {
        log.error('address_change_failed', { error: messageOf(error) });
      }
    }
  }
}

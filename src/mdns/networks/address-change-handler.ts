import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';

/** Who follows the hub's address on the home network. */
export interface AddressChangeHandlerOptions {
  /** The address as it is now; null while there is none. */
  address(): string | null;
  /**
   * What is done after a change, in this order.
   * @param moved whether the hub is to be reached at another address than before, and not only by another one as well
   */
  readonly handlers: readonly ((moved: boolean) => unknown)[];
  readonly log: Log;
}

/**
 * Has the hub's parts follow its address: one change after the other, and where several come meanwhile only what is there in the
 * end. A part that fails keeps none of the others from following.
 */
export class AddressChangeHandler implements Disposable {
  readonly #options: AddressChangeHandlerOptions;
  #lastAddress: string | null;
  /** Whether a change waits to be followed. */
  #isQueued = false;
  #isDisposed = false;
  #queue: Promise<void> = Promise.resolve();

  constructor(options: AddressChangeHandlerOptions) {
    this.#options = options;
    this.#lastAddress = options.address();
  }

  /** The address, or another one that the hub has as well, has changed. */
  notify(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.#queue = this.#queue.then(() => this.#runHandlers());
  }

  /** Follows no further: who says goodbye must not be announced again. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
  }

  async #runHandlers(): Promise<void> {
    this.#isQueued = false;
    const { log, handlers: steps } = this.#options;
    const address = this.#options.address();
    const moved = address !== this.#lastAddress;
    this.#lastAddress = address;
    if (this.#isDisposed) return;
    if (moved) log.info('address_changed', { address });
    for (const step of steps) {
      if (this.#isDisposed) return;
      try {
        await step(moved);
      } catch (error) {
        log.error('address_change_failed', { error: messageOf(error) });
      }
    }
  }
}

import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import { SerialQueue } from '../../system/serial-queue.ts';

interface AddressChangeHandlerOptions {
  /** The current address; null while there is none. */
  address(): string | null;
  /**
   * Called in this order after a change.
   * @param moved whether the hub's main address changed, and not only an additional one
   */
  readonly handlers: readonly ((moved: boolean) => unknown)[];
  readonly log: Log;
}

/**
 * Runs the handlers after a change of the hub's addresses. Changes are handled one after the other; those that arrive
 * during a run are handled together in the next one. A handler that fails does not stop the others.
 */
export class AddressChangeHandler implements Disposable {
  readonly #options: AddressChangeHandlerOptions;
  #lastAddress: string | null;
  /** Whether a change waits to be handled. */
  #isQueued = false;
  #isDisposed = false;
  readonly #queue = new SerialQueue();

  constructor(options: AddressChangeHandlerOptions) {
    this.#options = options;
    this.#lastAddress = options.address();
  }

  /** Reports that the main address or an additional one has changed. */
  notify(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    void this.#queue.run(() => this.#runHandlers());
  }

  /** Stops handling changes: after a goodbye the hub must not be announced again. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
  }

  async #runHandlers(): Promise<void> {
    this.#isQueued = false;
    const { log, handlers } = this.#options;
    const address = this.#options.address();
    const moved = address !== this.#lastAddress;
    this.#lastAddress = address;
    if (this.#isDisposed) return;
    if (moved) log.info('address_changed', { address });
    for (const handler of handlers) {
      if (this.#isDisposed) return;
      try {
        await handler(moved);
      } catch (error) {
        log.error('address_change_failed', { error: messageOf(error) });
      }
    }
  }
}

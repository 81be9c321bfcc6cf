import type { LoggedRequest } from './http/logged-request.ts';

/** What of the emulator's state a change is about. */
export type Changed = 'settings' | 'faults' | 'clock' | 'logins' | 'grants' | 'requests';

/** What happened: a request was answered or lost, or something is no longer as it was. */
export type EmulatorEvent =
  | { readonly event: 'request'; readonly data: LoggedRequest }
  | { readonly event: 'change'; readonly data: { readonly what: Changed } };

/** Listeners at one time. */
const MAX_LISTENERS = 32;

/** Tells whoever watches the emulator what happens in it. */
export class Changes {
  readonly #listeners = new Set<(event: EmulatorEvent) => void>();

  /** Something is no longer as it was: whoever shows it should look again. */
  changed(what: Changed): void {
    this.#tell({ event: 'change', data: { what } });
  }

  /** A request was answered, or its answer lost. */
  requested(data: LoggedRequest): void {
    this.#tell({ event: 'request', data });
  }

  /**
   * Calls `listener` for everything that happens from now on; it must not throw.
   * @returns ends it; null where there are too many listeners already
   */
  listen(listener: (event: EmulatorEvent) => void): (() => void) | null {
    if (this.#listeners.size >= MAX_LISTENERS) return null;
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #tell(event: EmulatorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

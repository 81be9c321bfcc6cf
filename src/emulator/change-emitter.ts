import type { LoggedRequest } from './http/logged-request.ts';

/** What of the emulator's state a change is about. */
export type ChangeTopic = 'settings' | 'faults' | 'clock' | 'logins' | 'grants' | 'requests';

/** What happened: a request was answered or lost, or something is no longer as it was. */
export type EmulatorEvent =
  | { readonly event: 'request'; readonly data: LoggedRequest }
  | { readonly event: 'change'; readonly data: { readonly what: ChangeTopic } };

/** Listeners at one time. */
const MAX_LISTENERS = 32;

/** Tells whoever watches the emulator what happens in it. */
export class ChangeEmitter {
  readonly #listeners = new Set<(event: EmulatorEvent) => void>();

  /** Something is no longer as it was: whoever shows it should look again. */
  emitChange(what: ChangeTopic): void {
    this.#emit({ event: 'change', data: { what } });
  }

  /** A request was answered, or its answer lost. */
  emitRequest(data: LoggedRequest): void {
    this.#emit({ event: 'request', data });
  }

  /**
   * Calls `listener` for everything that happens from now on; it must not throw.
   * @returns ends it; null where there are too many listeners already
   */
  subscribe(listener: (event: EmulatorEvent) => void): (() => void) | null {
    if (this.#listeners.size >= MAX_LISTENERS) return null;
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
    };
  }

  #emit(event: EmulatorEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

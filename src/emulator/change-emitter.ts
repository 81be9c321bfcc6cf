import type { LoggedRequest } from './http/logged-request.ts';

/** The part of the emulator's state that changed. */
export type ChangeTopic = 'settings' | 'faults' | 'clock' | 'logins' | 'devices' | 'grants' | 'requests';

/** A request that was answered or whose response was lost, or a change of the state. */
export type EmulatorEvent =
  | { readonly event: 'request'; readonly data: LoggedRequest }
  | { readonly event: 'change'; readonly data: { readonly what: ChangeTopic } };

/** Maximum number of listeners. */
const MAX_LISTENERS = 32;

/** Notifies listeners of requests and of changes. */
export class ChangeEmitter {
  readonly #listeners = new Set<(event: EmulatorEvent) => void>();

  /** Notifies listeners that a part of the state changed, so that they read it again. */
  emitChange(what: ChangeTopic): void {
    this.#emit({ event: 'change', data: { what } });
  }

  /** Notifies listeners of a request that was answered or whose response was lost. */
  emitRequest(data: LoggedRequest): void {
    this.#emit({ event: 'request', data });
  }

  /**
   * Calls `listener` for every later event; it must not throw.
   * @returns a function that unsubscribes, or null if there are too many listeners
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

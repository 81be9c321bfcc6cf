import { BoundedMap } from './bounded.ts';

/** Clients and endpoint kinds that are counted at a time. */
const COUNTED = 10_000;

/** Requests since a window was opened, by the emulator's clock. */
interface Window {
  readonly openedAt: number;
  count: number;
}

/** Counts requests by client and endpoint kind, in windows that the first request opens. */
export class RequestRates {
  #windows = new BoundedMap<Window>(COUNTED);

  /**
   * Counts a request.
   * @param window seconds
   * @param now milliseconds since 1970
   * @returns the seconds to wait where it is one too many, else 0
   */
  count(key: string, limit: number, window: number, now: number): number {
    let open = this.#windows.get(key);
    if (open === undefined || now >= open.openedAt + 1000 * window || now < open.openedAt) {
      open = { openedAt: now, count: 0 };
      this.#windows.set(key, open);
    }
    open.count += 1;
    return open.count <= limit ? 0 : Math.ceil((open.openedAt + 1000 * window - now) / 1000);
  }

  /** Begins to count anew. */
  forget(): void {
    this.#windows = new BoundedMap<Window>(COUNTED);
  }
}

/** A map that removes the least recently set entries beyond its limit, so that an emulator can run for weeks. */
export class BoundedMap<T> {
  readonly #entries = new Map<string, T>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  /** Sets an entry, or sets it again to make it the newest. */
  set(key: string, value: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** All entries, oldest first. */
  values(): T[] {
    return [...this.#entries.values()];
  }
}

/** Appends an entry, and removes the oldest one beyond the limit. */
export function appendBounded<T>(entries: T[], entry: T, limit: number): void {
  entries.push(entry);
  if (entries.length > limit) entries.shift();
}

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

/** The newest entries, up to a limit; older ones are overwritten. */
export class RingBuffer<T> {
  readonly #entries: T[] = [];
  readonly #limit: number;
  #next = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(entry: T): void {
    this.#entries[this.#next] = entry;
    this.#next = (this.#next + 1) % this.#limit;
  }

  /** All entries, oldest first. */
  values(): T[] {
    if (this.#entries.length < this.#limit) return [...this.#entries];
    return [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)];
  }
}

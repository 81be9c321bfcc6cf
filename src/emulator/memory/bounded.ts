/** Where the entries of a map are kept beyond this process. */
export interface PersistentMap<T> {
  /** The entries kept, the oldest first. */
  load(): Iterable<readonly [key: string, value: T]>;
  /** Keeps an entry as it is now; what was kept under this key is replaced. */
  put(key: string, value: T): void;
  remove(key: string): void;
  clear(): void;
}

/** A map that forgets what was set or touched longest ago, so that an emulator can run for weeks. */
export class BoundedMap<T> {
  readonly #entries = new Map<string, T>();
  readonly #limit: number;
  readonly #kept: PersistentMap<T> | null;

  constructor(limit: number, kept: PersistentMap<T> | null = null) {
    this.#limit = limit;
    this.#kept = kept;
    for (const [key, value] of kept?.load() ?? []) this.set(key, value);
  }

  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  /** Sets an entry, or sets it again to make it the newest. It is not kept before {@link keep}. */
  set(key: string, value: T): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#limit) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      this.#kept?.remove(oldest);
      return;
    }
  }

  /** Keeps an entry beyond this process as it is now, where that is wanted. */
  keep(key: string): void {
    const value = this.#entries.get(key);
    if (this.#kept !== null && value !== undefined) this.#kept.put(key, value);
  }

  clear(): void {
    this.#entries.clear();
    this.#kept?.clear();
  }

  /** All entries, the oldest first. */
  values(): T[] {
    return [...this.#entries.values()];
  }
}

/** The newest entries of a log; older ones are overwritten. */
export class Recent<T> {
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

  /** All entries, the oldest first. */
  values(): T[] {
    if (this.#entries.length < this.#limit) return [...this.#entries];
    return [...this.#entries.slice(this.#next), ...this.#entries.slice(0, this.#next)];
  }
}

interface KnownRevision {
  /** Infinite if this hub has removed the row. */
  readonly revision: number;
  /** The number of this entry: each write of this hub, and each read of what another one has written, gets the next. */
  readonly at: number;
}

/** The revisions of rows as this hub has read or written them last. Those that no longer exist are forgotten. */
export class KnownRevisions {
  readonly #known = new Map<string, number>();
  /** What was written or read during the reads under way. */
  readonly #written = new Map<string, KnownRevision>();
  #writes = 0;
  /** How many reads are under way. */
  #reads = 0;

  /** How many rows it keeps something of. */
  get size(): number {
    return new Set([...this.#known.keys(), ...this.#written.keys()]).size;
  }

  /** @returns 0 for a row that this hub does not know */
  get(id: string): number {
    return this.#known.get(id) ?? 0;
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** Notes what a committed transaction of this hub has written. */
  wrote(id: string, revision: number): void {
    this.#known.set(id, revision);
    this.#note(id, revision);
  }

  /** Notes that a committed transaction of this hub has removed a row. */
  removed(id: string): void {
    this.#known.delete(id);
    this.#note(id, Number.POSITIVE_INFINITY);
  }

  #note(id: string, revision: number): void {
    this.#writes += 1;
    if (this.#reads > 0) this.#written.set(id, { revision, at: this.#writes });
  }

  /**
   * Reads rows. Those that a write of this hub or another read has changed meanwhile are read again: so what this hub
   * has written or read is never followed by what was there before. Only those are, because a long read would never end
   * while the hub writes.
   * @param ids of the rows; null for all of the table
   * @param query reads the rows with these ids, or all
   */
  async read<Row extends { readonly revision: number }>(
    ids: ReadonlySet<string> | null,
    query: (ids: ReadonlySet<string> | null) => Promise<Row[]>,
    idOf: (row: Row) => string,
  ): Promise<Row[]> {
    this.#reads += 1;
    try {
      return await this.#read(ids, query, idOf);
    } finally {
      this.#reads -= 1;
      if (this.#reads === 0) this.#written.clear();
    }
  }

  async #read<Row extends { readonly revision: number }>(
    ids: ReadonlySet<string> | null,
    query: (ids: ReadonlySet<string> | null) => Promise<Row[]>,
    idOf: (row: Row) => string,
  ): Promise<Row[]> {
    const firstRead = this.#writes;
    const found = new Map<string, Row>();
    for (const row of await query(ids)) found.set(idOf(row), row);
    /** How many writes had ended before a row was read again. */
    const readAgain = new Map<string, number>();
    const isStale = (id: string) => this.#isStale(id, readAgain.get(id) ?? firstRead, found.get(id)?.revision);
    for (;;) {
      const stale = new Set([...(ids ?? this.#written.keys())].filter(isStale));
      if (stale.size === 0) break;
      const before = this.#writes;
      const rows = new Map((await query(stale)).map((row) => [idOf(row), row]));
      for (const id of stale) {
        const row = rows.get(id);
        if (row === undefined) found.delete(id);
        else found.set(id, row);
        readAgain.set(id, before);
      }
    }
    for (const [id, { revision }] of found) this.#noteRead(id, revision);
    for (const id of ids ?? [...this.#known.keys()]) if (!found.has(id)) this.#known.delete(id);
    return [...found.values()];
  }

  /** Whether a row was read before a write that had not ended when `before` writes had. */
  #isStale(id: string, before: number, revision: number | undefined): boolean {
    const written = this.#written.get(id);
    if (written === undefined || written.at <= before) return false;
    if (written.revision === Number.POSITIVE_INFINITY) return revision !== undefined;
    return (revision ?? 0) < written.revision;
  }

  #noteRead(id: string, revision: number): void {
    const known = this.#known.get(id);
    this.#known.set(id, revision);
    if (known === undefined || revision > known) this.#note(id, revision);
  }
}

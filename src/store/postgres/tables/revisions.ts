interface KnownRevision {
  /** Infinite if this hub has removed the row. */
  readonly revision: number;
  /** How many writes of this hub, and reads of what another one has written, had ended then. */
  readonly at: number;
}

/** The revisions of rows as this hub has read or written them last. */
export class KnownRevisions {
  readonly #known = new Map<string, number>();
  readonly #written = new Map<string, KnownRevision>();
  #writes = 0;

  /** @returns 0 for a row that this hub does not know */
  get(id: string): number {
    return this.#known.get(id) ?? 0;
  }

  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** Notes what a committed transaction of this hub has written. */
  wrote(id: string, revision: number): void {
    this.#writes += 1;
    this.#known.set(id, revision);
    this.#written.set(id, { revision, at: this.#writes });
  }

  /** Notes that a committed transaction of this hub has removed a row. */
  removed(id: string): void {
    this.#writes += 1;
    this.#known.delete(id);
    this.#written.set(id, { revision: Number.POSITIVE_INFINITY, at: this.#writes });
  }

  /**
   * Reads rows. If a write of this hub or another read has ended meanwhile and was newer, they are read again: so what
   * this hub has written or read is never followed by what was there before.
   * @param ids of the rows; null for all of the table
   */
  async read<Row extends { readonly revision: number }>(
    ids: ReadonlySet<string> | null,
    query: () => Promise<Row[]>,
    idOf: (row: Row) => string,
  ): Promise<Row[]> {
    for (;;) {
      const before = this.#writes;
      const rows = await query();
      const found = new Map(rows.map((row) => [idOf(row), row.revision]));
      const isStale = [...(ids ?? this.#written.keys())].some((id) => {
        const written = this.#written.get(id);
        if (written === undefined || written.at <= before) return false;
        const revision = found.get(id);
        return written.revision === Number.POSITIVE_INFINITY
          ? revision !== undefined
          : (revision ?? 0) < written.revision;
      });
      if (isStale) continue;
      for (const [id, revision] of found) this.#noteRead(id, revision);
      return rows;
    }
  }
  #noteRead(id: string, revision: number): void {
    const known = this.#known.get(id);
    this.#known.set(id, revision);
    if (known === undefined || revision <= known) return;
    this.#writes += 1;
    this.#written.set(id, { revision, at: this.#writes });
  }
}

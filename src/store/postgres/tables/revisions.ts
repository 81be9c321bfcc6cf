/** The revisions of rows as this hub has read or written them last. Those that no longer exist are forgotten. */
export class KnownRevisions {
  readonly #known = new Map<string, number>();
  /** For each read under way, the rows that were written, or read in a newer version, since it began. */
  readonly #changed = new Set<Set<string>>();

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
    for (const changed of this.#changed) changed.add(id);
  }

  /** Notes that a committed transaction of this hub has removed a row. */
  removed(id: string): void {
    this.#known.delete(id);
    for (const changed of this.#changed) changed.add(id);
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
    const changed = new Set<string>();
    const found = new Map<string, Row>();
    this.#changed.add(changed);
    try {
      for (const row of await query(ids)) found.set(idOf(row), row);
      for (;;) {
        const stale = new Set([...changed].filter((id) => ids === null || ids.has(id)));
        changed.clear();
        if (stale.size === 0) break;
        const rows = new Map((await query(stale)).map((row) => [idOf(row), row]));
        for (const id of stale) {
          const row = rows.get(id);
          if (row === undefined) found.delete(id);
          else found.set(id, row);
        }
      }
    } finally {
      this.#changed.delete(changed);
    }
    for (const [id, { revision }] of found) {
      if (revision > this.get(id)) this.wrote(id, revision);
      else this.#known.set(id, revision);
    }
    for (const id of ids ?? [...this.#known.keys()]) if (!found.has(id)) this.#known.delete(id);
    return [...found.values()];
  }
}

/**
 * Forgets that rows are damaged if a read has not found them.
 * @param damaged the keys of the damaged rows of a table
 * @param asked the keys that were asked for; null for all
 * @param found the keys of the rows that were found
 */
export function unmarkMissing(damaged: Set<string>, asked: ReadonlySet<string> | null, found: readonly string[]): void {
  const existing = new Set(found);
  for (const key of damaged) if ((asked?.has(key) ?? true) && !existing.has(key)) damaged.delete(key);
}

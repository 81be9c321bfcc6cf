import type { Appliances } from '../broker/appliances.ts';
import type { HistoryBook } from '../broker/history-book.ts';
import type { Histories, HistoryEntry, HistoryLine } from '../core/history.ts';

/** Shows people what happened to an appliance. */
export function openHistoryDesk(appliances: Appliances, book: HistoryBook): Histories {
  return {
    async history(name) {
      const lines = await book.of(appliances.named(name).id);
      // Among those of one moment the one that came last.
      return lines
        .toReversed()
        .toSorted((a, b) => b.last - a.last)
        .map(entryOf);
    },
  };
}

function entryOf({ kind, why, first, last, count }: HistoryLine): HistoryEntry {
  return { kind, why, first: instant(first), last: instant(last), count };
}

/** RFC 3339 UTC, whole seconds. @param time ms since 1970 */
function instant(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
}

import type { Appliances } from '../broker/appliances.ts';
import type { HistoryBook } from '../broker/history-book.ts';
import { type Histories, type HistoryEntry, type HistoryLine, newestFirst } from '../core/history.ts';
import { rfc3339 } from '../core/rfc3339.ts';

/** Shows people what happened to an appliance. */
export function openHistoryDesk(appliances: Appliances, book: HistoryBook): Histories {
  return {
    async history(name) {
      return newestFirst(await book.of(appliances.named(name).id)).map(entryOf);
    },
  };
}

function entryOf({ kind, why, first, last, count }: HistoryLine): HistoryEntry {
  return { kind, why, first: rfc3339(first), last: rfc3339(last), count };
}

import type { HistoryEntry } from '../../core/reports/history.ts';

/** How an appliance was on a day, the worst of it; `unknown` also where it was not connected at all. */
export type DayState = 'connected' | 'failing' | 'needs_pairing' | 'unknown';

/** A day (UTC, as history has them) and how it was. */
export interface Day {
  /** Its beginning, in ms since 1970. */
  readonly begins: number;
  readonly state: DayState;
}

const DAY = 86_400_000;
/** The worse ones later. */
const ORDER: readonly DayState[] = ['unknown', 'connected', 'failing', 'needs_pairing'];

/**
 * The last days, today at the end. A day on which nothing was written down is as the one before it ended.
 * @param entries of the history, in any order
 * @param now in ms since 1970
 */
export function lastDays(entries: readonly HistoryEntry[], now: number, count: number): Day[] {
  const events = entries
    .map((entry) => ({ at: Date.parse(entry.last), state: stateAfter(entry) }))
    .filter((event) => event.state !== null)
    .toSorted((a, b) => a.at - b.at);
  const today = Math.floor(now / DAY) * DAY;
  let state: DayState = 'unknown';
  let next = 0;
  return Array.from({ length: count }, (_, index) => {
    const begins = today - (count - 1 - index) * DAY;
    let worst: DayState = 'unknown';
    for (let event = events[next]; event !== undefined && event.at < begins; event = events[next]) {
      state = event.state ?? state;
      next += 1;
    }
    worst = worse(worst, state);
    for (let event = events[next]; event !== undefined && event.at < begins + DAY; event = events[next]) {
      state = event.state ?? state;
      worst = worse(worst, state);
      next += 1;
    }
    return { begins, state: worst };
  });
}

/** How an appliance is after an entry; null where that changes nothing. */
export function stateAfter({ kind, why }: Pick<HistoryEntry, 'kind' | 'why'>): DayState | null {
  switch (kind) {
    case 'paired':
    case 'refreshed':
      return 'connected';
    case 'refresh_failed':
      return why === 'refused' ? 'needs_pairing' : 'failing';
    case 'token_refused':
      return 'failing';
    case 'unpaired':
      return 'unknown';
    case 'pairing_failed':
      return null;
  }
}

function worse(one: DayState, other: DayState): DayState {
  return ORDER.indexOf(one) > ORDER.indexOf(other) ? one : other;
}

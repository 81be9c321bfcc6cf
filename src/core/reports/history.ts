import type { PairingFailureReason } from '../pairings/pairing.ts';
import type { ApplianceEvent } from './appliance-event.ts';
import type { ProblemCode } from './problem.ts';

/** What happens to an appliance. */
export const HISTORY_KINDS = [
  'paired',
  'pairing_failed',
  'unpaired',
  'refreshed',
  'refresh_failed',
  'token_refused',
] as const;

/** A line of an appliance's history; refreshes and failures that are alike make one line a day (UTC). Instants in RFC 3339 UTC. */
export interface HistoryEntry {
  readonly kind: (typeof HISTORY_KINDS)[number];
  /** Why, for what failed; null otherwise. */
  readonly why: PairingFailureReason | ProblemCode | null;
  /** When it happened first, and last. */
  readonly first: string;
  readonly last: string;
  /** How often. */
  readonly count: number;
}

/** A line as it is kept; times in ms since 1970. */
export interface StoredHistoryEntry extends Pick<HistoryEntry, 'kind' | 'why' | 'count'> {
  readonly first: number;
  readonly last: number;
}

/** How many lines of an appliance are kept: of one that just works, half a year. */
export const MAX_HISTORY_ENTRIES = 200;
/** No clock that says less than this is right, in ms since 1970: what it tells is no time. */
export const MIN_PLAUSIBLE_TIME = Date.UTC(2025, 0, 1);

const DAY = 86_400_000;
/** Two of them are never one line, and nothing of before becomes one with what came after them. */
const MILESTONES: readonly HistoryEntry['kind'][] = ['paired', 'unpaired'];

/** What keeps histories. */
export interface HistoryStore {
  /** The lines of an appliance, the oldest first; those that can't be read are left out. @throws Failure as the store */
  history(appliance: string): Promise<readonly StoredHistoryEntry[]>;
  /** Writes lines to those of each appliance that there is; all or nothing. @throws Failure as the store */
  addHistory(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void>;
}

/** Lines that wait to be written together with something else. */
export interface PendingHistory {
  /** What may be written of this appliance now, the oldest first. */
  pending(appliance: string): readonly StoredHistoryEntry[];
  /** What {@link pending} has just given is written. */
  markWritten(appliance: string): void;
}

/** The line that an event makes. @param at when it was, in ms since 1970 */
export function historyEntryOf(event: ApplianceEvent, at: number): StoredHistoryEntry {
  const why = event.kind === 'refresh_failed' ? event.problem : event.kind === 'pairing_failed' ? event.reason : null;
  return { kind: event.kind, why, first: at, last: at, count: 1 };
}

/**
 * Where a line belongs among others: it becomes one with an alike one of the same day, or comes to their end.
 * @param lines the oldest first
 * @returns the line to put at `index`, which is `lines.length` for one that was added
 */
export function placeHistoryEntry(
  lines: readonly StoredHistoryEntry[],
  next: StoredHistoryEntry,
): { index: number; line: StoredHistoryEntry } {
  const end = { index: lines.length, line: next };
  if (MILESTONES.includes(next.kind)) return end;
  for (const [index, line] of [...lines.entries()].toReversed()) {
    if (MILESTONES.includes(line.kind)) return end;
    if (line.kind !== next.kind || line.why !== next.why || utcDay(line.last) !== utcDay(next.first)) continue;
    const { first, last, count } = line;
    const merged = { first: Math.min(first, next.first), last: Math.max(last, next.last), count: count + next.count };
    return { index, line: { ...line, ...merged } };
  }
  return end;
}

/** Lines with one more; see {@link placeHistoryEntry}. */
export function addHistoryEntry(
  lines: readonly StoredHistoryEntry[],
  next: StoredHistoryEntry,
): readonly StoredHistoryEntry[] {
  const { index, line } = placeHistoryEntry(lines, next);
  return lines.toSpliced(index, 1, line);
}

/**
 * Lines with the one that last had something added first. A milestone stays where it was put, whatever the times say: they are
 * as exact as what told the true time then, and a portal tells it in whole seconds.
 * @param lines as they were put, the oldest first
 */
export function newestFirst(lines: readonly StoredHistoryEntry[]): readonly StoredHistoryEntry[] {
  const at = lines.findLastIndex(({ kind }) => MILESTONES.includes(kind));
  // Among those of one moment the one that came last.
  const since = lines
    .slice(at + 1)
    .toReversed()
    .toSorted((a, b) => b.last - a.last);
  return at === -1 ? since : [...since, ...lines.slice(at, at + 1), ...newestFirst(lines.slice(0, at))];
}

function utcDay(time: number): number {
  return Math.floor(time / DAY);
}

/** What is remembered of appliances. */
export interface HistoryAdministration {
  /** The line that last had something added first. @throws Failure `appliance_unknown` */
  history(name: string): Promise<readonly HistoryEntry[]>;
}

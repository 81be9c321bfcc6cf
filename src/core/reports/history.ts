import { type Instant, utcDay } from '../clock.ts';
import type { PairingFailureReason } from '../pairings/pairing.ts';
import type { ProblemCode } from './problem.ts';

/**
 * What happens to a connection. Its history and the metrics record these events. `user` is the name of the person who
 * started the pairing or removed the grant, as a reverse proxy reports it; left out if it is unknown.
 */
export type ConnectionEvent = {
  /** The connection's id. */
  readonly connection: string;
  readonly at: Instant;
} & (
  | { readonly kind: 'paired'; readonly scope: string | null; readonly user?: string }
  /** Not emitted for a device flow that nobody opened, if it expired, was replaced or was cancelled. */
  | { readonly kind: 'pairing_failed'; readonly reason: PairingFailureReason }
  /** A person removed the grant. */
  | { readonly kind: 'unpaired'; readonly user?: string }
  /** New tokens are stored; `took` is the time in ms from sending the request until then. */
  | { readonly kind: 'refreshed'; readonly took: number }
  /**
   * An attempt could not begin, brought no new tokens, or brought tokens that the store can't save (`store_unwritable`)
   * and that the hub serves from memory. `took` in ms since sending; null if nothing was sent, or if a power cut or a
   * stop interrupted it.
   */
  | { readonly kind: 'refresh_failed'; readonly problem: ProblemCode; readonly took: number | null }
  /** An appliance reported that the cloud refused its access token. */
  | { readonly kind: 'token_refused' }
);

/** Handles an event; never throws, and never blocks. */
export type EmitEvent = (event: ConnectionEvent) => void;

/**
 * A line of a connection's history. Equal refreshes and equal failures of one day (UTC) share one line. Instants are
 * RFC 3339 UTC.
 */
export interface HistoryEntry {
  readonly kind: 'paired' | 'pairing_failed' | 'unpaired' | 'refreshed' | 'refresh_failed' | 'token_refused';
  /** The reason of a failure; null otherwise. */
  readonly why: PairingFailureReason | ProblemCode | null;
  /** When it first and last happened. */
  readonly first: string;
  readonly last: string;
  /** How often it happened. */
  readonly count: number;
  /** The name of the user who did it, as a reverse proxy reported it; left out if it is unknown. */
  readonly user?: string;
}

/** A line in the store; times in ms since 1970. */
export interface StoredHistoryEntry extends Pick<HistoryEntry, 'kind' | 'why' | 'count' | 'user'> {
  readonly first: number;
  readonly last: number;
}

/** How many lines the store keeps for a connection: half a year, if it works without failures. */
export const MAX_HISTORY_ENTRIES = 200;

/** These never share a line, and lines from before one are never merged with events after it. */
const MILESTONES: readonly HistoryEntry['kind'][] = ['paired', 'unpaired'];

/** Where histories are stored. */
export interface HistoryStore {
  /** How long lines may wait for another write once the true time is confirmed, in ms: long, to spare an SD card. */
  readonly maxDelay: number;
  /** The lines of a connection, the oldest first, without unreadable ones. @throws Failure as {@link Store} */
  lines(connection: string): Promise<readonly StoredHistoryEntry[]>;
  /**
   * Adds lines to the histories of those connections that still exist; all or nothing.
   * @throws Failure as {@link Store}
   */
  add(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void>;
  /** From now on every write for a connection may also write its pending history. */
  setSource(waiting: PendingHistory): void;
}

/** Lines that wait for another write, so that they share its transaction. */
export interface PendingHistory {
  /** The lines of this connection that can be written now, the oldest first. */
  pending(connection: string): readonly StoredHistoryEntry[];
  /** Reports that the lines that {@link pending} returned last are written. */
  markWritten(connection: string): void;
}

/** The history line for an event. @param at when it happened, in ms since 1970 */
export function historyEntryOf(event: ConnectionEvent, at: number): StoredHistoryEntry {
  const why = event.kind === 'refresh_failed' ? event.problem : event.kind === 'pairing_failed' ? event.reason : null;
  const user = event.kind === 'paired' || event.kind === 'unpaired' ? event.user : undefined;
  return { kind: event.kind, why, first: at, last: at, count: 1, ...(user !== undefined && { user }) };
}

/**
 * Merges a line with an equal one of the same day, or appends it.
 * @param lines the oldest first
 * @returns the resulting line and its `index`, which is `lines.length` if the line is appended
 */
export function placeHistoryEntry(
  lines: readonly StoredHistoryEntry[],
  next: StoredHistoryEntry,
): { index: number; line: StoredHistoryEntry } {
  const appended = { index: lines.length, line: next };
  if (MILESTONES.includes(next.kind)) return appended;
  for (const [index, line] of [...lines.entries()].toReversed()) {
    if (MILESTONES.includes(line.kind)) return appended;
    if (line.kind !== next.kind || line.why !== next.why || utcDay(line.last) !== utcDay(next.first)) continue;
    const { first, last, count } = line;
    const merged = { first: Math.min(first, next.first), last: Math.max(last, next.last), count: count + next.count };
    return { index, line: { ...line, ...merged } };
  }
  return appended;
}

/** The lines with one more, see {@link placeHistoryEntry}. */
export function addHistoryEntry(
  lines: readonly StoredHistoryEntry[],
  next: StoredHistoryEntry,
): readonly StoredHistoryEntry[] {
  const { index, line } = placeHistoryEntry(lines, next);
  return lines.toSpliced(index, 1, line);
}

/**
 * Sorts lines, the most recently updated first. A milestone keeps its place, whatever the times say: a time is only as
 * exact as its source, and a portal's `Date` has whole seconds.
 * @param lines in the order in which they were added
 */
export function newestFirst(lines: readonly StoredHistoryEntry[]): readonly StoredHistoryEntry[] {
  const milestone = lines.findLastIndex(({ kind }) => MILESTONES.includes(kind));
  // Reversed first, because the sort is stable: among lines with equal times, the one that was added last comes first.
  const later = lines
    .slice(milestone + 1)
    .toReversed()
    .toSorted((a, b) => b.last - a.last);
  if (milestone === -1) return later;
  return [...later, ...lines.slice(milestone, milestone + 1), ...newestFirst(lines.slice(0, milestone))];
}

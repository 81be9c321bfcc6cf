import { type Instant, MIN_PLAUSIBLE_TIME, wallOffset } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import {
  addHistoryEntry,
  type ConnectionEvent,
  type HistoryStore,
  historyEntryOf,
  type PendingHistory,
  placeHistoryEntry,
  type StoredHistoryEntry,
} from '../../core/reports/history.ts';
import type { Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';

/**
 * Lines that were not written along with something else are written separately after this long, in ms; if the true time is
 * confirmed, after {@link HistoryStore.maxDelay}.
 */
const MAX_WRITE_DELAY = 3_600_000;
/** A login is written after this long, in ms: after a power cut its connection would still seem to need one. */
const LOGIN_WRITE_DELAY = 1000;
/** The most pending lines of each connection while nothing can be written; beyond that the oldest are dropped. */
const MAX_PENDING_LINES = 50;
const TASK = 'history';

/**
 * Records the histories. A line waits in memory until something else is written for its connection, so that it costs the
 * SD card no separate write (docs/decisions/history.md); logins are rare and do not wait. Errors here affect nothing else.
 *
 * Pending lines have times on the boot clock. They are converted to the wall clock as late as possible, because it may
 * be set meanwhile. Until the true time is confirmed they wait as long as they may, and while the wall clock is
 * implausible they are not written at all.
 */
export class HistoryRecorder implements PendingHistory, AsyncDisposable {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  readonly #store: HistoryStore;
  readonly #scheduler: Scheduler;
  readonly #referenceClock: ReferenceClock;
  /** By connection, the oldest first; times on the boot clock. */
  readonly #pendingLines = new Map<string, readonly StoredHistoryEntry[]>();
  #failing = false;

  constructor(
    environment: Pick<Environment, 'clock' | 'log'>,
    store: HistoryStore,
    scheduler: Scheduler,
    referenceClock: ReferenceClock,
  ) {
    this.#environment = environment;
    this.#store = store;
    this.#scheduler = scheduler;
    this.#referenceClock = referenceClock;
  }

  /** Records an event in the history of its connection. */
  readonly record = (event: ConnectionEvent): void => {
    const { uptime } = this.#environment.clock.now();
    if (event.kind === 'paired' && this.#referenceClock.confirmed !== null)
      this.#scheduler.plan(TASK, uptime + LOGIN_WRITE_DELAY, () => void this.#writeDue(true));
    else if (this.#pendingLines.size === 0) this.#scheduleWrite(uptime + this.#store.maxDelay);
    const lines = this.#pendingLines.get(event.connection) ?? [];
    const line = historyEntryOf(event, this.#uptimeOf(event.at));
    // Whether two lines are of the same day depends on the wall clock.
    const { index } = placeHistoryEntry(this.#withWallTimes(lines), this.#withWallTimes([line])[0] ?? line);
    const similar = lines[index];
    const merged = similar === undefined ? line : { ...similar, last: line.last, count: similar.count + 1 };
    this.#pendingLines.set(event.connection, lines.toSpliced(index, 1, merged).slice(-MAX_PENDING_LINES));
  };

  pending(connection: string): readonly StoredHistoryEntry[] {
    return this.#referenceClock.confirmed === null ? [] : this.#writableLines(connection);
  }

  markWritten(connection: string): void {
    this.#pendingLines.delete(connection);
  }

  /** A connection's history including pending lines, the oldest first; unreadable lines are left out. */
  async historyOf(connection: string): Promise<readonly StoredHistoryEntry[]> {
    const stored = await this.#store.lines(connection).catch((error: unknown) => {
      this.#environment.log.warn('history_unreadable', { error: messageOf(error) });
      return [];
    });
    return this.#writableLines(connection).reduce(addHistoryEntry, stored);
  }

  /** Writes the pending lines if that is possible. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#scheduler.cancel(TASK);
    await this.#writeAll();
  }

  /** How long a line waits, in ms. */
  get #maxWait(): number {
    return this.#referenceClock.confirmed === null ? MAX_WRITE_DELAY : this.#store.maxDelay;
  }

  /** @param at on the boot clock, in ms */
  #scheduleWrite(at: number): void {
    this.#scheduler.plan(TASK, at, () => void this.#writeDue());
  }

  /** @param isLogin whether all lines are written, because one is of a login */
  async #writeDue(isLogin = false): Promise<void> {
    const { uptime } = this.#environment.clock.now();
    const next = uptime + this.#store.maxDelay;
    const due = () =>
      [...this.#pendingLines.values()]
        .flat()
        .reduce((earliest, { first }) => Math.min(earliest, first), Number.POSITIVE_INFINITY) + this.#maxWait;
    if (isLogin || due() <= uptime) await this.#writeAll();
    if (this.#pendingLines.size > 0) this.#scheduleWrite(due() <= uptime ? next : Math.min(next, due()));
  }

  async #writeAll(): Promise<void> {
    const before = [...this.#pendingLines];
    const lines = new Map(before.map(([connection]) => [connection, this.#writableLines(connection)] as const));
    if ([...lines.values()].flat().length === 0) return;
    // Before the write: nothing else may write these lines, and later ones must not be merged with them.
    this.#pendingLines.clear();
    try {
      await this.#store.add(lines);
    } catch (error) {
      for (const [connection, unwritten] of before) {
        const added = this.#pendingLines.get(connection) ?? [];
        this.#pendingLines.set(connection, [...unwritten, ...added].slice(-MAX_PENDING_LINES));
      }
      const level = this.#failing ? 'debug' : 'warn';
      this.#failing = true;
      this.#environment.log.at(level, 'history_write_failed', { error: messageOf(error) });
      return;
    }
    this.#failing = false;
  }

  /** The pending lines of a connection with wall-clock times; none while the wall clock is implausible. */
  #writableLines(connection: string): readonly StoredHistoryEntry[] {
    const isPlausible = this.#wallOffset() + this.#environment.clock.now().uptime >= MIN_PLAUSIBLE_TIME;
    return isPlausible ? this.#withWallTimes(this.#pendingLines.get(connection) ?? []) : [];
  }

  #withWallTimes(lines: readonly StoredHistoryEntry[]): readonly StoredHistoryEntry[] {
    const offset = this.#wallOffset();
    const toWallTime = (time: number) => Math.round(offset + time);
    return lines.map((line) => ({ ...line, first: toWallTime(line.first), last: toWallTime(line.last) }));
  }

  /** The best known offset from the boot clock to the wall clock, in ms. */
  #wallOffset(): number {
    return wallOffset(this.#referenceClock.confirmed, this.#environment.clock.now());
  }

  /** For an instant of another boot, only its wall clock is known. */
  #uptimeOf({ boot, uptime, wall }: Instant): number {
    const now = this.#environment.clock.now();
    return boot === now.boot ? uptime : Math.min(now.uptime, wall - this.#wallOffset());
  }
}

import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { ApplianceEvent } from '../../core/reports/appliance-event.ts';
import {
  addHistoryEntry,
  type HistoryStore,
  historyEntryOf,
  MIN_PLAUSIBLE_TIME,
  type PendingHistory,
  placeHistoryEntry,
  type StoredHistoryEntry,
} from '../../core/reports/history.ts';
import type { Environment } from '../environment.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';

/** What nothing else was written with is written alone after so long, in ms. */
const MAX_WAIT = 3_600_000;
/** Of each appliance so many lines wait at most, while nothing can be written; then the oldest go. */
const MAX_PENDING_LINES = 50;
const TASK = 'history';

/**
 * Keeps the histories: a line waits in memory until something else is written of its appliance, so that it costs the card no
 * write of its own (docs/decisions/history.md). Nothing that goes wrong here hinders anybody.
 *
 * Lines that wait have their times on the boot clock, and get those of the wall clock as late as may be: it may be set meanwhile.
 * Until somebody has told the true time they wait the longest, and while the clock makes no sense they are not written at all.
 */
export class HistoryRecorder implements PendingHistory, AsyncDisposable {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  readonly #store: HistoryStore;
  readonly #scheduler: Scheduler;
  readonly #referenceClock: ReferenceClock;
  /** By appliance, the oldest first; times on the boot clock. */
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

  /** Takes an event, for the history of its appliance. */
  readonly record = (event: ApplianceEvent): void => {
    if (this.#pendingLines.size === 0) this.#scheduleWrite(this.#environment.clock.now().uptime + MAX_WAIT);
    const lines = this.#pendingLines.get(event.appliance) ?? [];
    const line = historyEntryOf(event, this.#uptimeOf(event.at));
    // What is of one day is a matter of the wall clock.
    const { index } = placeHistoryEntry(this.#withWallTimes(lines), this.#withWallTimes([line])[0] ?? line);
    const alike = lines[index];
    const taken = alike === undefined ? line : { ...alike, last: line.last, count: alike.count + 1 };
    this.#pendingLines.set(event.appliance, lines.toSpliced(index, 1, taken).slice(-MAX_PENDING_LINES));
  };

  pending(appliance: string): readonly StoredHistoryEntry[] {
    return this.#referenceClock.confirmed === null ? [] : this.#writableLines(appliance);
  }

  markWritten(appliance: string): void {
    this.#pendingLines.delete(appliance);
  }

  /** An appliance's history, with what waits of it, the oldest first; what can't be read is left out. */
  async historyOf(appliance: string): Promise<readonly StoredHistoryEntry[]> {
    const kept = await this.#store.history(appliance).catch((error: unknown) => {
      this.#environment.log.warn('history_unreadable', { error: messageOf(error) });
      return [];
    });
    return this.#writableLines(appliance).reduce(addHistoryEntry, kept);
  }

  /** Writes what still waits, where that is possible. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#scheduler.cancel(TASK);
    await this.#writeAll();
  }

  /** @param at on the boot clock, in ms */
  #scheduleWrite(at: number): void {
    this.#scheduler.plan(TASK, at, () => void this.#writeOverdue());
  }

  async #writeOverdue(): Promise<void> {
    const { uptime } = this.#environment.clock.now();
    const due = () =>
      [...this.#pendingLines.values()]
        .flat()
        .reduce((least, { first }) => Math.min(least, first), Number.POSITIVE_INFINITY) + MAX_WAIT;
    if (due() <= uptime) await this.#writeAll();
    if (this.#pendingLines.size > 0) this.#scheduleWrite(due() <= uptime ? uptime + MAX_WAIT : due());
  }

  async #writeAll(): Promise<void> {
    const before = [...this.#pendingLines];
    const lines = new Map(before.map(([appliance]) => [appliance, this.#writableLines(appliance)] as const));
    if ([...lines.values()].flat().length === 0) return;
    // What comes while they are being written is another line, and nobody else writes these.
    this.#pendingLines.clear();
    try {
      await this.#store.addHistory(lines);
    } catch (error) {
      for (const [appliance, unwritten] of before) {
        const since = this.#pendingLines.get(appliance) ?? [];
        this.#pendingLines.set(appliance, [...unwritten, ...since].slice(-MAX_PENDING_LINES));
      }
      const level = this.#failing ? 'debug' : 'warn';
      this.#failing = true;
      this.#environment.log.at(level, 'history_write_failed', { error: messageOf(error) });
      return;
    }
    this.#failing = false;
  }

  /** What waits of an appliance, with its times by the wall clock; nothing while that can't be right. */
  #writableLines(appliance: string): readonly StoredHistoryEntry[] {
    const isSensible = this.#wallOffset() + this.#environment.clock.now().uptime >= MIN_PLAUSIBLE_TIME;
    return isSensible ? this.#withWallTimes(this.#pendingLines.get(appliance) ?? []) : [];
  }

  #withWallTimes(lines: readonly StoredHistoryEntry[]): readonly StoredHistoryEntry[] {
    const offset = this.#wallOffset();
    const dated = (time: number) => Math.round(offset + time);
    return lines.map((line) => ({ ...line, first: dated(line.first), last: dated(line.last) }));
  }

  /** From the boot clock to the wall clock, as well as it is known now, in ms. */
  #wallOffset(): number {
    const { confirmed } = this.#referenceClock;
    const { wall, uptime } = this.#environment.clock.now();
    return confirmed === null ? wall - uptime : confirmed.wall - confirmed.at.uptime;
  }

  /** Of an instant of another boot the wall clock is all there is. */
  #uptimeOf({ boot, uptime, wall }: Instant): number {
    const now = this.#environment.clock.now();
    return boot === now.boot ? uptime : Math.min(now.uptime, wall - this.#wallOffset());
  }
}

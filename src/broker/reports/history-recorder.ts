import type { Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import {
  type HistoryLine,
  type HistoryStore,
  lineOf,
  placed,
  SENSIBLE_SINCE,
  type WaitingHistory,
  withLine,
} from '../../core/reports/history.ts';
import type { HubEvent } from '../../core/reports/hub-event.ts';
import type { Environment } from '../environment.ts';
import type { PortalClock } from '../time/portal-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';

/** What nothing else was written with is written alone after so long, in ms. */
const MAX_WAIT = 3_600_000;
/** Of each appliance so many lines wait at most, while nothing can be written; then the oldest go. */
const MAX_WAITING = 50;
const TASK = 'history';

/**
 * Keeps the histories: a line waits in memory until something else is written of its appliance, so that it costs the card no
 * write of its own (docs/decisions/history.md). Nothing that goes wrong here hinders anybody.
 *
 * Lines that wait have their times on the boot clock, and get those of the wall clock as late as may be: it may be set meanwhile.
 * Until somebody has told the true time they wait the longest, and while the clock makes no sense they are not written at all.
 */
export class HistoryRecorder implements WaitingHistory, AsyncDisposable {
  readonly #environment: Pick<Environment, 'clock' | 'log'>;
  readonly #store: HistoryStore;
  readonly #scheduler: Scheduler;
  readonly #portalClock: PortalClock;
  /** By appliance, the oldest first; times on the boot clock. */
  readonly #lines = new Map<string, readonly HistoryLine[]>();
  #failing = false;

  constructor(
    environment: Pick<Environment, 'clock' | 'log'>,
    store: HistoryStore,
    scheduler: Scheduler,
    portalClock: PortalClock,
  ) {
    this.#environment = environment;
    this.#store = store;
    this.#scheduler = scheduler;
    this.#portalClock = portalClock;
  }

  /** Takes an event, for the history of its appliance. */
  readonly take = (event: HubEvent): void => {
    if (this.#lines.size === 0) this.#plan(this.#environment.clock.now().uptime + MAX_WAIT);
    const lines = this.#lines.get(event.appliance) ?? [];
    const line = lineOf(event, this.#uptimeOf(event.at));
    // What is of one day is a matter of the wall clock.
    const { index } = placed(this.#dated(lines), this.#dated([line])[0] ?? line);
    const alike = lines[index];
    const taken = alike === undefined ? line : { ...alike, last: line.last, count: alike.count + 1 };
    this.#lines.set(event.appliance, lines.toSpliced(index, 1, taken).slice(-MAX_WAITING));
  };

  waiting(appliance: string): readonly HistoryLine[] {
    return this.#portalClock.confirmed === null ? [] : this.#writable(appliance);
  }

  written(appliance: string): void {
    this.#lines.delete(appliance);
  }

  /** An appliance's history, with what waits of it, the oldest first; what can't be read is left out. */
  async of(appliance: string): Promise<readonly HistoryLine[]> {
    const kept = await this.#store.history(appliance).catch((error: unknown) => {
      this.#environment.log.warn('history_unreadable', { error: messageOf(error) });
      return [];
    });
    return this.#writable(appliance).reduce(withLine, kept);
  }

  /** Writes what still waits, where that is possible. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#scheduler.cancel(TASK);
    await this.#writeAll();
  }

  /** @param at on the boot clock, in ms */
  #plan(at: number): void {
    this.#scheduler.plan(TASK, at, () => void this.#writeOverdue());
  }

  async #writeOverdue(): Promise<void> {
    const { uptime } = this.#environment.clock.now();
    const due = () =>
      [...this.#lines.values()].flat().reduce((least, { first }) => Math.min(least, first), Number.POSITIVE_INFINITY) +
      MAX_WAIT;
    if (due() <= uptime) await this.#writeAll();
    if (this.#lines.size > 0) this.#plan(due() <= uptime ? uptime + MAX_WAIT : due());
  }

  async #writeAll(): Promise<void> {
    const before = [...this.#lines];
    const lines = new Map(before.map(([appliance]) => [appliance, this.#writable(appliance)] as const));
    if ([...lines.values()].flat().length === 0) return;
    // What comes while they are being written is another line, and nobody else writes these.
    this.#lines.clear();
    try {
      await this.#store.addHistory(lines);
    } catch (error) {
      for (const [appliance, unwritten] of before) {
        const since = this.#lines.get(appliance) ?? [];
        this.#lines.set(appliance, [...unwritten, ...since].slice(-MAX_WAITING));
      }
      const level = this.#failing ? 'debug' : 'warn';
      this.#failing = true;
      this.#environment.log.at(level, 'history_write_failed', { error: messageOf(error) });
      return;
    }
    this.#failing = false;
  }

  /** What waits of an appliance, with its times by the wall clock; nothing while that can't be right. */
  #writable(appliance: string): readonly HistoryLine[] {
    const isSensible = this.#offset() + this.#environment.clock.now().uptime >= SENSIBLE_SINCE;
    return isSensible ? this.#dated(this.#lines.get(appliance) ?? []) : [];
  }

  #dated(lines: readonly HistoryLine[]): readonly HistoryLine[] {
    const offset = this.#offset();
    const dated = (time: number) => Math.round(offset + time);
    return lines.map((line) => ({ ...line, first: dated(line.first), last: dated(line.last) }));
  }

  /** From the boot clock to the wall clock, as well as it is known now, in ms. */
  #offset(): number {
    const { confirmed } = this.#portalClock;
    const { wall, uptime } = this.#environment.clock.now();
    return confirmed === null ? wall - uptime : confirmed.wall - confirmed.at.uptime;
  }

  /** Of an instant of another boot the wall clock is all there is. */
  #uptimeOf({ boot, uptime, wall }: Instant): number {
    const now = this.#environment.clock.now();
    return boot === now.boot ? uptime : Math.min(now.uptime, wall - this.#offset());
  }
}

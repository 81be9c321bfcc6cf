import { type ConfirmedTime, elapsed, type Instant, trueTime } from '../core/clock.ts';
import type { Notice } from '../core/notice.ts';

/** When something was told: `time` is the true time then, in ms since 1970, null where nobody knew it. */
export interface Telling {
  readonly at: Instant;
  readonly time: number | null;
}

/** What is remembered of a notice, over restarts too. */
export interface NoticeRecord {
  readonly notice: Notice;
  /** Of the grant that it is of; null where it is of none. */
  readonly generation: number | null;
  /** When it was told last; null where it was not, since it comes and goes too often, or is over. */
  readonly told: Telling | null;
  /** When it was told newly, the last few times. */
  readonly raised: readonly Telling[];
  readonly over: boolean;
}

/** One moment, and when this run of the hub began. */
export interface Moment {
  readonly now: Instant;
  readonly started: Instant;
  readonly confirmed: ConfirmedTime | null;
}

/**
 * Milliseconds since something was told. Over a boot that is known by the true time alone; where nobody knows that, it counts
 * from when the hub was started.
 */
export function sinceTelling({ at, time }: Telling, { now, started, confirmed }: Moment): number {
  const present = trueTime(confirmed, now);
  const byTime = time === null || present === null ? null : Math.max(0, present - time);
  return elapsed(at, now) ?? byTime ?? elapsed(started, now) ?? 0;
}

/** The telling that happens now. */
export function telling({ now, confirmed }: Moment): Telling {
  return { at: now, time: trueTime(confirmed, now) };
}

/** @returns the records by whom they are of; none of what makes no sense: it would only be told once more */
export function readRecords(text: string | null): Map<string, NoticeRecord> {
  try {
    const entries: unknown = JSON.parse(text ?? '[]');
    return new Map((Array.isArray(entries) ? entries : []).filter(isEntry));
  } catch {
    return new Map();
  }
}

export function writeRecords(records: ReadonlyMap<string, NoticeRecord>): string {
  return JSON.stringify([...records]);
}

/** What was written by this hub is whole, or of another version. */
function isEntry(entry: unknown): entry is [string, NoticeRecord] {
  if (!Array.isArray(entry) || typeof entry[0] !== 'string') return false;
  const record: Partial<NoticeRecord> | null = entry[1];
  return typeof record?.notice?.code === 'string' && Array.isArray(record.raised) && typeof record.over === 'boolean';
}

import * as v from 'valibot';
import { type ConfirmedTime, confirmedTimeAt, elapsed, type Instant } from '../../core/clock.ts';
import type { Notice, NoticeCode } from '../../core/health/notice.ts';

/** When a report was made: `time` is the true time then, in ms since 1970; null if it was unknown. */
export interface ReportTime {
  readonly at: Instant;
  readonly time: number | null;
}

/** What is remembered of a notice, across restarts too. */
export interface NoticeRecord {
  readonly notice: Notice;
  /** The generation of the grant that it is about; null if it is about none. */
  readonly generation: number | null;
  /** When it was last reported; null if it was not, because it comes and goes too often, or is resolved. */
  readonly lastReported: ReportTime | null;
  /** The last few times when it was raised. */
  readonly raised: readonly ReportTime[];
  readonly over: boolean;
}

/** A moment, the start of this run of the hub, and the confirmed time. */
export interface TimeContext {
  readonly now: Instant;
  readonly started: Instant;
  readonly confirmed: ConfirmedTime | null;
}

/**
 * Milliseconds since a report. Across boots only the true time gives them; if it is unknown, they count from the start
 * of the hub.
 */
export function msSinceReport({ at, time }: ReportTime, { now, started, confirmed }: TimeContext): number {
  const trueTime = confirmedTimeAt(confirmed, now);
  // A report from the future: the clock was wrong then or is wrong now.
  const byTime = time === null || trueTime === null || trueTime < time ? null : trueTime - time;
  return elapsed(at, now) ?? byTime ?? elapsed(started, now) ?? 0;
}

/** The time of a report that is made now. */
export function currentReportTime({ now, confirmed }: TimeContext): ReportTime {
  return { at: now, time: confirmedTimeAt(confirmed, now) };
}

/** @returns the records by their keys, without invalid ones: their notices are only reported once more */
export function parseNoticeRecords(text: string | null): Map<string, NoticeRecord> {
  const parsed = v.safeParse(entries, text ?? '[]');
  return new Map(
    (parsed.success ? parsed.output : []).flatMap((each) => {
      const parsedEntry = v.safeParse(entry, each);
      return parsedEntry.success ? [parsedEntry.output] : [];
    }),
  );
}

export function serializeNoticeRecords(records: ReadonlyMap<string, NoticeRecord>): string {
  return JSON.stringify([...records]);
}

const instant = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
const storedReportTime = v.object({ at: instant, time: v.nullable(v.number()) });
const notice = v.object({
  // Another version may have more codes.
  code: v.custom<NoticeCode>((code) => typeof code === 'string'),
  severity: v.picklist(['error', 'warning']),
  appliance: v.nullable(v.string()),
  connection: v.nullable(v.string()),
  appliances: v.array(v.string()),
  message: v.string(),
  what_to_do: v.string(),
  since: v.string(),
});
const entry = v.tuple([
  v.string(),
  v.object({
    notice,
    generation: v.nullable(v.number()),
    lastReported: v.nullable(storedReportTime),
    raised: v.array(storedReportTime),
    over: v.boolean(),
  }),
]);
const entries = v.pipe(v.string(), v.parseJson(), v.array(v.unknown()));

import * as v from 'valibot';
import { type ConfirmedTime, confirmedTimeAt, elapsed, type Instant } from '../../core/clock.ts';
import type { Notice, NoticeCode } from '../../core/reports/notice.ts';

/** When something was told: `time` is the true time then, in ms since 1970, null where nobody knew it. */
export interface ReportTime {
  readonly at: Instant;
  readonly time: number | null;
}

/** What is remembered of a notice, over restarts too. */
export interface NoticeRecord {
  readonly notice: Notice;
  /** Of the grant that it is of; null where it is of none. */
  readonly generation: number | null;
  /** When it was told last; null where it was not, since it comes and goes too often, or is over. */
  readonly told: ReportTime | null;
  /** When it was told newly, the last few times. */
  readonly raised: readonly ReportTime[];
  readonly over: boolean;
}

/** One moment, and when this run of the hub began. */
export interface TimeContext {
  readonly now: Instant;
  readonly started: Instant;
  readonly confirmed: ConfirmedTime | null;
}

/**
 * Milliseconds since something was told. Over a boot that is known by the true time alone; where nobody knows that, it counts
 * from when the hub was started.
 */
export function msSinceReport({ at, time }: ReportTime, { now, started, confirmed }: TimeContext): number {
  const present = confirmedTimeAt(confirmed, now);
  // What is told to be later than now was told by a clock that was wrong, then or now.
  const byTime = time === null || present === null || present < time ? null : present - time;
  return elapsed(at, now) ?? byTime ?? elapsed(started, now) ?? 0;
}

/** The telling that happens now. */
export function reportTimeNow({ now, confirmed }: TimeContext): ReportTime {
  return { at: now, time: confirmedTimeAt(confirmed, now) };
}

/** @returns the records by whom they are of; none of what makes no sense: it would only be told once more */
export function parseNoticeRecords(text: string | null): Map<string, NoticeRecord> {
  const read = v.safeParse(entries, text ?? '[]');
  return new Map(
    (read.success ? read.output : []).flatMap((each) => {
      const one = v.safeParse(entry, each);
      return one.success ? [one.output] : [];
    }),
  );
}

export function serializeNoticeRecords(records: ReadonlyMap<string, NoticeRecord>): string {
  return JSON.stringify([...records]);
}

const instant = v.object({ boot: v.string(), uptime: v.number(), wall: v.number() });
const storedReportTime = v.object({ at: instant, time: v.nullable(v.number()) });
const notice = v.object({
  // Another version may have more of them.
  code: v.custom<NoticeCode>((code) => typeof code === 'string'),
  severity: v.picklist(['error', 'warning']),
  appliance: v.nullable(v.string()),
  message: v.string(),
  what_to_do: v.string(),
  since: v.string(),
});
const entry = v.tuple([
  v.string(),
  v.object({
    notice,
    generation: v.nullable(v.number()),
    told: v.nullable(storedReportTime),
    raised: v.array(storedReportTime),
    over: v.boolean(),
  }),
]);
const entries = v.pipe(v.string(), v.parseJson(), v.array(v.unknown()));

import * as v from 'valibot';
import { NOTICES_SETTING } from '../../core/backup-contents.ts';
import { type ConfirmedTime, confirmedTimeAt, elapsed, type Instant } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { HUB_CONDITION_CODES, HUB_CONDITIONS } from '../../core/health/hub-conditions.ts';
import type { Notice, NoticeCode } from '../../core/health/notice.ts';
import { HUB_NOTICES_SETTING } from '../../core/site.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { BrokerStore, Environment } from '../ports.ts';

/** When a report was made: `time` is the true time then, in ms since 1970; null if it was unknown. */
interface ReportTime {
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

/** The text of no records. */
const NONE = '[]';

/** @returns the records by their keys, without invalid ones: their notices are only reported once more */
function parseNoticeRecords(text: string | null): Map<string, NoticeRecord> {
  const parsed = v.safeParse(entries, text ?? NONE);
  return new Map(
    (parsed.success ? parsed.output : []).flatMap((each) => {
      const parsedEntry = v.safeParse(entry, each);
      return parsedEntry.success ? [parsedEntry.output] : [];
    }),
  );
}

function serializeNoticeRecords(records: ReadonlyMap<string, NoticeRecord>): string {
  return JSON.stringify([...records]);
}

const storedReportTime = v.object({ at: instantSchema, time: v.nullable(v.number()) });
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

/** The key of the notice about a problem of the hub as a whole. */
export function hubNoticeKey(code: string): string {
  return `hub ${code}`;
}

/** Of what all hubs of a site see: one hub reports it. */
const SHARED_KEYS: ReadonlySet<string> = new Set(
  HUB_CONDITION_CODES.filter((code) => HUB_CONDITIONS[code].isOfSite).map(hubNoticeKey),
);

function concernsThisHub(key: string): boolean {
  return key.startsWith(hubNoticeKey('')) && !SHARED_KEYS.has(key);
}

/** What a {@link NoticeArchive} works with. */
export interface NoticeArchiveContext {
  readonly environment: Pick<Environment, 'log'>;
  readonly store: Pick<BrokerStore, 'settings' | 'holdLease'>;
}

/**
 * The records of the notices that were reported, in memory and in the store. Each hub reports those about itself, and the
 * one that holds a lease for that those about connections and appliances. The others of its site know its records, so that
 * each can take over; a hub that is alone always has the lease.
 */
export class NoticeArchive {
  readonly #context: NoticeArchiveContext;
  /** By the notice's key. */
  readonly records = new Map<string, NoticeRecord>();
  #isReporter = false;
  /** The settings as they were last read or written: the hub's own one, and the shared one. */
  #ownText = NONE;
  #sharedText: string | null = null;
  #hasUnsaved = false;

  private constructor(context: NoticeArchiveContext) {
    this.#context = context;
  }

  /** @throws Failure as {@link Store} */
  static async load(context: NoticeArchiveContext): Promise<NoticeArchive> {
    const archive = new NoticeArchive(context);
    await archive.reload();
    archive.#ownText = (await context.store.settings.get(HUB_NOTICES_SETTING)) ?? NONE;
    for (const [key, record] of parseNoticeRecords(archive.#ownText)) archive.records.set(key, record);
    return archive;
  }

  /** Whether something was reported that could not be saved. */
  get hasUnsaved(): boolean {
    return this.#hasUnsaved;
  }

  /** Whether this hub reports the notice with this key. */
  isReportedHere(key: string): boolean {
    return this.#isReporter || concernsThisHub(key);
  }

  /**
   * Takes or keeps the lease, which ends half a minute after the last check. A hub that takes it over reads first what the
   * others have reported.
   */
  async takeLease(): Promise<void> {
    const had = this.#isReporter;
    try {
      this.#isReporter = await this.#context.store.holdLease('notices');
      if (this.#isReporter && !had) await this.reload();
    } catch {
      // The store is away, and no hub can have the lease.
      this.#isReporter = false;
    }
  }

  /** Reads again what another hub may have reported. @throws Failure as {@link Store} */
  async reload(): Promise<void> {
    this.#sharedText = await this.#context.store.settings.get(NOTICES_SETTING);
    for (const key of this.records.keys()) if (!concernsThisHub(key)) this.records.delete(key);
    for (const [key, record] of parseNoticeRecords(this.#sharedText)) this.records.set(key, record);
  }

  /**
   * Saves the records before their reports are delivered. If they can't be saved, that is logged once.
   * @param keys of the notices that are about to be reported
   * @returns the keys of those that may be reported: not those that another hub may report
   */
  async save(keys: readonly string[]): Promise<ReadonlySet<string>> {
    try {
      const isShared = await this.#write();
      this.#hasUnsaved = false;
      return new Set(keys.filter((key) => isShared || concernsThisHub(key)));
    } catch (error) {
      if (!this.#hasUnsaved) this.#context.environment.log.warn('notices_not_stored', { error: messageOf(error) });
      this.#hasUnsaved = true;
      // While it keeps the lease, nobody else reports them.
      this.#isReporter &&= await this.#context.store.holdLease('notices').catch(() => false);
      return new Set(keys.filter((key) => this.isReportedHere(key)));
    }
  }

  /** @returns false if another hub has changed the shared records */
  async #write(): Promise<boolean> {
    const own = this.#serialize(concernsThisHub);
    if (own !== this.#ownText) await this.#context.store.settings.save({ [HUB_NOTICES_SETTING]: own });
    this.#ownText = own;
    const shared = this.#serialize((key) => !concernsThisHub(key));
    return !this.#isReporter || shared === (this.#sharedText ?? NONE) || this.#writeShared(shared);
  }

  async #writeShared(text: string): Promise<boolean> {
    const isWritten = await this.#context.store.settings.replace(
      { [NOTICES_SETTING]: this.#sharedText },
      { [NOTICES_SETTING]: text },
    );
    if (isWritten) {
      this.#sharedText = text;
      return true;
    }
    // This hub was paused for longer than its lease.
    this.#isReporter = false;
    await this.reload();
    return false;
  }

  #serialize(isOf: (key: string) => boolean): string {
    return serializeNoticeRecords(
      new Map(
        [...this.records].filter(
          ([key, { lastReported, raised }]) => isOf(key) && (lastReported !== null || raised.length > 0),
        ),
      ),
    );
  }
}

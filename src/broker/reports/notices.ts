import { NOTICES_SETTING } from '../../core/backup-contents.ts';
import { DAY, elapsed, type Instant, MAX_TIMER_DELAY, rfc3339 } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import { type Condition, concernsHub } from '../../core/health/condition.ts';
import type { Notice, NoticeReport } from '../../core/health/notice.ts';
import {
  currentNotice,
  type FailurePeriod,
  failureDuration,
  hubNotice,
  isKeptAfterRestart,
  isNotRepeated,
  matchesCondition,
  resolvedMessage,
  type SubjectNoticeInput,
  subjectNotice,
} from '../../core/health/notice-policy.ts';
import type { SiteNews } from '../../core/site.ts';
import { SerialQueue } from '../../system/serial-queue.ts';
import type { Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import {
  currentReportTime,
  hubNoticeKey,
  msSinceReport,
  NoticeArchive,
  type NoticeArchiveContext,
  type NoticeRecord,
  type TimeContext,
} from './notice-archive.ts';

/** The current conditions, and the state of all connections. */
export interface NoticeInput {
  readonly conditions: readonly Condition[];
  readonly subjects: readonly SubjectNoticeInput[];
}

/** What {@link Notices} works with. */
export interface NoticesContext extends NoticeArchiveContext {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly referenceClock: Pick<ReferenceClock, 'confirmed'>;
}

/** A notice that comes and goes is raised at most this often in a day. */
const MAX_RAISED_PER_DAY = 3;
/** The delay from a change to the check: changes come in groups, and each report writes all records. In ms. */
const CHANGE_DEBOUNCE_MS = 500;

/** A notice that is not resolved for the people it was reported to. */
interface ActiveNotice {
  readonly notice: Notice;
  readonly generation: number | null;
  /** Whether it describes the current state, and not only an earlier one. */
  readonly isCurrent: boolean;
}

/**
 * Knows the active notices, and reports each to the log and the notice channels: when it begins, once a day while it is
 * active, and when it is resolved. Reports are remembered, so that a restart repeats none; they are written only when
 * something is reported.
 */
export class Notices implements AsyncDisposable {
  readonly #context: NoticesContext;
  readonly #started: Instant;
  readonly #archive: NoticeArchive;
  readonly #records: Map<string, NoticeRecord>;
  /** When this run first saw refreshes of a connection fail, or a problem of the hub. */
  readonly #firstSeen = new Map<string, Instant>();
  #collectInput: (() => Promise<NoticeInput>) | null = null;
  #deliver: (report: NoticeReport) => void = () => undefined;
  #disarm: () => void = () => undefined;
  readonly #checks = new SerialQueue();
  #isCheckScheduled = false;
  #ended = false;

  private constructor(context: NoticesContext, archive: NoticeArchive) {
    this.#context = context;
    this.#archive = archive;
    this.#records = archive.records;
    this.#started = context.environment.clock.now();
  }

  static async load(context: NoticesContext): Promise<Notices> {
    return new Notices(context, await NoticeArchive.load(context));
  }

  /**
   * Starts the checks.
   * @param collectInput called when the hub is up, and from then on every minute and after every change
   * @param deliver sends a report by command and webhook
   */
  start(collectInput: () => Promise<NoticeInput>, deliver: (report: NoticeReport) => void): void {
    this.#collectInput = collectInput;
    this.#deliver = deliver;
    this.#arm(0);
  }

  /** Another hub may have reported notices. @throws Failure as {@link Store} */
  async applyNews({ settings, all }: Pick<SiteNews, 'settings' | 'all'>): Promise<void> {
    if (!all && !settings.has(NOTICES_SETTING)) return;
    await this.#checks.run(() => this.#archive.reload());
  }

  /** Something has changed: schedules a check soon. */
  scheduleCheck(): void {
    if (this.#collectInput === null || this.#isCheckScheduled) return;
    this.#isCheckScheduled = true;
    this.#arm(CHANGE_DEBOUNCE_MS);
  }

  /** The active notices that describe the current state, errors first. They report nothing beyond the conditions. */
  activeNotices(facts: NoticeInput): Notice[] {
    const current = [...this.#activeNotices(facts, this.#timeContext()).values()].filter(({ isCurrent }) => isCurrent);
    const notices = current.map(({ notice }) => notice);
    return notices.sort((a, b) => (a.severity === b.severity ? 0 : a.severity === 'error' ? -1 : 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#disarm();
    await this.#checks.idle;
  }

  #arm(delay: number): void {
    if (this.#ended) return;
    this.#disarm();
    this.#disarm = this.#context.environment.timers.after(delay, () => {
      this.#isCheckScheduled = false;
      this.#arm(MAX_TIMER_DELAY);
      this.#checks.run(() => this.#reportAll()).catch((error: unknown) => this.#logFailure(error));
    });
  }

  #logFailure(error: unknown): void {
    this.#context.environment.log.error('notices_failed', { error: messageOf(error) });
  }

  #timeContext(): TimeContext {
    const { environment, referenceClock } = this.#context;
    return { now: environment.clock.now(), started: this.#started, confirmed: referenceClock.confirmed };
  }

  /** By key: one notice for each connection, and one for each problem of the hub. */
  #activeNotices({ subjects, conditions }: NoticeInput, time: TimeContext): Map<string, ActiveNotice> {
    const active = new Map<string, ActiveNotice>();
    const seen = new Set<string>();
    for (const facts of subjects) {
      const { key } = facts;
      const failing = this.#failingState(key, facts, time.now);
      if (failing !== null) seen.add(key);
      const derived = subjectNotice(facts, failing);
      const before = this.#records.get(key);
      const notice = before === undefined || before.over ? derived : currentNotice(before, { facts, notice: derived });
      if (notice === null) continue;
      const isCurrent = notice.code === derived?.code || matchesCondition(notice, facts.condition);
      active.set(key, { notice, generation: facts.grant?.generation ?? null, isCurrent });
    }
    for (const condition of conditions) {
      if (!concernsHub(condition)) continue;
      const key = hubNoticeKey(condition.code);
      seen.add(key);
      const notice = hubNotice(condition, this.#seenForMs(key, time.now));
      if (notice !== null) active.set(key, { notice, generation: null, isCurrent: true });
    }
    const running = elapsed(time.started, time.now) ?? 0;
    for (const [key, { notice, over }] of this.#records) {
      const isKept = !over && concernsHub(notice) && isKeptAfterRestart(notice.code, running);
      if (isKept && !active.has(key)) active.set(key, { notice, generation: null, isCurrent: seen.has(key) });
    }
    for (const key of this.#firstSeen.keys()) if (!seen.has(key)) this.#firstSeen.delete(key);
    return active;
  }

  #failingState(key: string, { condition, grant }: SubjectNoticeInput, now: Instant): FailurePeriod | null {
    if (grant === null || !grant.isFailing || condition === null) return null;
    const duration = failureDuration(this.#seenForMs(key, now), grant.overdue);
    return { duration, since: rfc3339(now.wall - duration) };
  }

  #seenForMs(key: string, now: Instant): number {
    const first = this.#firstSeen.get(key) ?? now;
    this.#firstSeen.set(key, first);
    return elapsed(first, now) ?? 0;
  }

  async #reportAll(): Promise<void> {
    if (this.#collectInput === null || this.#ended) return;
    const facts = await this.#collectInput();
    if (this.#ended) return;
    await this.#archive.takeLease();
    const time = this.#timeContext();
    const active = this.#activeNotices(facts, time);
    const byKey = new Map(facts.subjects.map((one) => [one.key, one]));
    const isReported = (key: string) => this.#archive.isReportedHere(key);
    const reports = [...active].flatMap(([key, one]) =>
      isReported(key) ? this.#reportsFor(key, one, time).map((report) => ({ key, report })) : [],
    );
    for (const [key, record] of this.#records) {
      if (active.has(key) || !isReported(key)) continue;
      if (!record.over && record.lastReported !== null) {
        const message = resolvedMessage(record.notice, byKey.get(key));
        reports.push({ key, report: { ...toReport(record.notice, 'resolved'), message, what_to_do: 'Nothing' } });
      }
      // The times of earlier reports are kept for as long as they count.
      if (record.raised.every((one) => msSinceReport(one, time) >= DAY)) this.#records.delete(key);
      else this.#records.set(key, { ...record, lastReported: null, over: true });
    }
    if (reports.length === 0 && !this.#archive.hasUnsaved) return;
    const reportable = await this.#archive.save(reports.map(({ key }) => key));
    for (const { key, report } of reports) if (reportable.has(key)) this.#emitReport(report);
  }

  /** The reports that are due for an active notice. */
  #reportsFor(key: string, activeNotice: ActiveNotice, time: TimeContext): NoticeReport[] {
    const { notice, generation, isCurrent } = activeNotice;
    const before = this.#records.get(key);
    const isNew =
      before === undefined || before.over || before.lastReported === null || before.notice.code !== notice.code;
    const raised = (before?.raised ?? []).filter((one) => msSinceReport(one, time) < DAY);
    const reportTime = currentReportTime(time);
    if (isNew) {
      const isBounded = raised.length >= MAX_RAISED_PER_DAY;
      const record = { notice, generation, raised: isBounded ? raised : [...raised, reportTime], over: false };
      // If it was reported before with another code, its end is still reported.
      this.#records.set(key, { ...record, lastReported: isBounded ? (before?.lastReported ?? null) : reportTime });
      return isBounded ? [] : [toReport(notice, 'raised')];
    }
    const isDue = isCurrent && isRepeatDue(before, time);
    this.#records.set(key, { ...before, notice, generation, raised, ...(isDue && { lastReported: reportTime }) });
    return isDue ? [toReport(notice, 'repeated')] : [];
  }

  #emitReport(report: NoticeReport): void {
    const { environment } = this.#context;
    const { notice, connection, appliance, severity, message, what_to_do, status } = report;
    const level = status === 'resolved' ? 'info' : severity === 'error' ? 'error' : 'warn';
    environment.log.at(level, 'notice', { notice, connection, appliance, severity, message, what_to_do, status });
    this.#deliver(report);
  }
}

function toReport({ code, ...notice }: Notice, status: NoticeReport['status']): NoticeReport {
  return { status, notice: code, ...notice };
}

/** Whether an active notice was reported a day ago and is due again. */
function isRepeatDue({ notice, lastReported }: NoticeRecord, time: TimeContext): boolean {
  return !isNotRepeated(notice.code) && lastReported !== null && msSinceReport(lastReported, time) >= DAY;
}

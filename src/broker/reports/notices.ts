import { NOTICES_SETTING } from '../../core/backup-state.ts';
import { elapsed, type Instant, MAX_TIMER_DELAY, rfc3339 } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Condition } from '../../core/health/condition.ts';
import type { Notice, NoticeReport } from '../../core/reports/notice.ts';
import {
  type ApplianceNoticeInput,
  applianceNotice,
  currentNotice,
  type FailurePeriod,
  failureDuration,
  hubNotice,
  isKeptAfterRestart,
  isNotRepeated,
  matchesCondition,
  resolvedMessage,
} from '../../core/reports/notice-policy.ts';
import type { Store } from '../../core/store.ts';
import type { Environment } from '../environment.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import {
  msSinceReport,
  type NoticeRecord,
  parseNoticeRecords,
  reportTimeNow,
  serializeNoticeRecords,
  type TimeContext,
} from './notice-record.ts';

/** How the hub and all its appliances stand. */
export interface NoticeInput {
  readonly conditions: readonly Condition[];
  readonly appliances: readonly ApplianceNoticeInput[];
}

/** What {@link Notices} works with. */
export interface NoticesContext {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly store: Pick<Store, 'setting' | 'saveSetting'>;
  readonly portalClock: Pick<ReferenceClock, 'confirmed'>;
}

const DAY_MS = 86_400_000;
/** One that comes and goes is told newly so often in a day. */
const MAX_RAISED_PER_DAY = 3;
/** After a change, so long until it is looked at: many come together, and each time all that was told is written. In ms. */
const CHANGE_DEBOUNCE_MS = 500;

/** A notice that is not over for those who were told of it. */
interface ActiveNotice {
  readonly notice: Notice;
  readonly generation: number | null;
  /** It says what is known now, and not only what was before. */
  readonly isCurrent: boolean;
}

/**
 * Knows which notices stand, and tells each to the log and beyond: when it begins, once a day while it stands, and when it is over.
 * What was told is remembered, so that a restart tells nothing twice; it is written when something is told, and only then.
 */
export class Notices implements AsyncDisposable {
  readonly #context: NoticesContext;
  readonly #started: Instant;
  readonly #records: Map<string, NoticeRecord>;
  /** When this run has first seen refreshes of an appliance fail, or the hub have a problem. */
  readonly #firstSeen = new Map<string, Instant>();
  #collectInput: (() => NoticeInput) | null = null;
  #deliver: (report: NoticeReport) => void = () => undefined;
  #disarm: () => void = () => undefined;
  #checkQueue: Promise<void> = Promise.resolve();
  #isCheckScheduled = false;
  #ended = false;
  #hasUnsavedRecords = false;

  private constructor(context: NoticesContext, records: Map<string, NoticeRecord>) {
    this.#context = context;
    this.#records = records;
    this.#started = context.environment.clock.now();
  }

  static async load(context: NoticesContext): Promise<Notices> {
    return new Notices(context, parseNoticeRecords(await context.store.setting(NOTICES_SETTING)));
  }

  /**
   * Begins to look.
   * @param look called when the hub is up, and from then on each minute and after every change
   * @param carry carries a report out of the house
   */
  start(look: () => NoticeInput, carry: (report: NoticeReport) => void): void {
    this.#collectInput = look;
    this.#deliver = carry;
    this.#arm(0);
  }

  /** Something has changed: it is looked at soon. */
  scheduleCheck(): void {
    if (this.#collectInput === null || this.#isCheckScheduled) return;
    this.#isCheckScheduled = true;
    this.#arm(CHANGE_DEBOUNCE_MS);
  }

  /** The notices that stand and say what is known now, the gravest first: none says more than the conditions do. */
  activeNotices(facts: NoticeInput): Notice[] {
    const present = [...this.#activeNotices(facts, this.#timeContext()).values()].filter(({ isCurrent }) => isCurrent);
    const notices = present.map(({ notice }) => notice);
    return notices.sort((a, b) => (a.severity === b.severity ? 0 : a.severity === 'error' ? -1 : 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#disarm();
    await this.#checkQueue;
  }

  #arm(delay: number): void {
    if (this.#ended) return;
    this.#disarm();
    this.#disarm = this.#context.environment.timers.after(delay, () => {
      this.#isCheckScheduled = false;
      this.#arm(MAX_TIMER_DELAY);
      this.#checkQueue = this.#checkQueue
        .then(() => this.#reportAll())
        .catch((error: unknown) => this.#logFailure(error));
    });
  }

  #logFailure(error: unknown): void {
    this.#context.environment.log.error('notices_failed', { error: messageOf(error) });
  }

  #timeContext(): TimeContext {
    const { environment, portalClock } = this.#context;
    return { now: environment.clock.now(), started: this.#started, confirmed: portalClock.confirmed };
  }

  /** By whom they are of: one of each appliance, and one of each problem of the hub. */
  #activeNotices({ appliances, conditions }: NoticeInput, moment: TimeContext): Map<string, ActiveNotice> {
    const stand = new Map<string, ActiveNotice>();
    const seen = new Set<string>();
    for (const facts of appliances) {
      const key = applianceKey(facts.name);
      const failing = this.#failingState(key, facts, moment.now);
      if (failing !== null) seen.add(key);
      const fresh = applianceNotice(facts, failing);
      const before = this.#records.get(key);
      const notice = before === undefined || before.over ? fresh : currentNotice(before, { facts, notice: fresh });
      if (notice === null) continue;
      const isCurrent = notice.code === fresh?.code || matchesCondition(notice, facts.condition);
      stand.set(key, { notice, generation: facts.grant?.generation ?? null, isCurrent });
    }
    for (const condition of conditions) {
      if (condition.appliance !== null) continue;
      const key = `hub ${condition.code}`;
      seen.add(key);
      const notice = hubNotice(condition, this.#seenForMs(key, moment.now));
      if (notice !== null) stand.set(key, { notice, generation: null, isCurrent: true });
    }
    const running = elapsed(moment.started, moment.now) ?? 0;
    for (const [key, { notice, over }] of this.#records) {
      const stays = !over && notice.appliance === null && isKeptAfterRestart(notice.code, running);
      if (stays && !stand.has(key)) stand.set(key, { notice, generation: null, isCurrent: seen.has(key) });
    }
    for (const key of this.#firstSeen.keys()) if (!seen.has(key)) this.#firstSeen.delete(key);
    return stand;
  }

  #failingState(key: string, { condition, grant }: ApplianceNoticeInput, now: Instant): FailurePeriod | null {
    if (grant === null || !grant.isFailing || condition === null) return null;
    const lasting = failureDuration(this.#seenForMs(key, now), grant.overdue);
    return { duration: lasting, since: rfc3339(now.wall - lasting) };
  }

  #seenForMs(key: string, now: Instant): number {
    const first = this.#firstSeen.get(key) ?? now;
    this.#firstSeen.set(key, first);
    return elapsed(first, now) ?? 0;
  }

  async #reportAll(): Promise<void> {
    if (this.#collectInput === null || this.#ended) return;
    const facts = this.#collectInput();
    const moment = this.#timeContext();
    const stand = this.#activeNotices(facts, moment);
    const byKey = new Map(facts.appliances.map((one) => [applianceKey(one.name), one]));
    const reports = [...stand].flatMap(([key, one]) => this.#reportsFor(key, one, moment));
    for (const [key, record] of this.#records) {
      if (stand.has(key)) continue;
      if (!record.over && record.told !== null) {
        const message = resolvedMessage(record.notice, byKey.get(key));
        reports.push({ ...toReport(record.notice, 'resolved'), message, what_to_do: 'Nothing' });
      }
      // How often it was told is remembered for as long as that counts.
      if (record.raised.every((one) => msSinceReport(one, moment) >= DAY_MS)) this.#records.delete(key);
      else this.#records.set(key, { ...record, told: null, over: true });
    }
    if (reports.length > 0 || this.#hasUnsavedRecords) await this.#write();
    for (const report of reports) this.#emitReport(report);
  }

  /** What there is to tell of a notice that stands, if anything. */
  #reportsFor(key: string, stands: ActiveNotice, moment: TimeContext): NoticeReport[] {
    const { notice, generation, isCurrent } = stands;
    const before = this.#records.get(key);
    const isNew = before === undefined || before.over || before.told === null || before.notice.code !== notice.code;
    const raised = (before?.raised ?? []).filter((one) => msSinceReport(one, moment) < DAY_MS);
    const told = reportTimeNow(moment);
    if (isNew) {
      const isBounded = raised.length >= MAX_RAISED_PER_DAY;
      const record = { notice, generation, raised: isBounded ? raised : [...raised, told], over: false };
      // Of what was told as something else it is still told when that is over.
      this.#records.set(key, { ...record, told: isBounded ? (before?.told ?? null) : told });
      return isBounded ? [] : [toReport(notice, 'raised')];
    }
    const isDue = isCurrent && isRepeatDue(before, moment);
    this.#records.set(key, { ...before, notice, generation, raised, ...(isDue && { told }) });
    return isDue ? [toReport(notice, 'repeated')] : [];
  }

  async #write(): Promise<void> {
    const { store, environment } = this.#context;
    const kept = new Map([...this.#records].filter(([, { told, raised }]) => told !== null || raised.length > 0));
    try {
      await store.saveSetting(NOTICES_SETTING, serializeNoticeRecords(kept));
      this.#hasUnsavedRecords = false;
    } catch (error) {
      if (!this.#hasUnsavedRecords) environment.log.warn('notices_not_stored', { error: messageOf(error) });
      this.#hasUnsavedRecords = true;
    }
  }

  #emitReport(report: NoticeReport): void {
    const { environment } = this.#context;
    const { notice, appliance, severity, message, what_to_do, status } = report;
    const level = status === 'resolved' ? 'info' : severity === 'error' ? 'error' : 'warn';
    environment.log.at(level, 'notice', { notice, appliance, severity, message, what_to_do, status });
    this.#deliver(report);
  }
}

function applianceKey(appliance: string): string {
  return `appliance ${appliance}`;
}

function toReport({ code, ...notice }: Notice, status: NoticeReport['status']): NoticeReport {
  return { status, notice: code, ...notice };
}

/** Whether a notice that stands was told a day ago, and is to be told again. */
function isRepeatDue({ notice, told }: NoticeRecord, moment: TimeContext): boolean {
  return !isNotRepeated(notice.code) && told !== null && msSinceReport(told, moment) >= DAY_MS;
}

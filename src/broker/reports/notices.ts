import { NOTICES_TOLD } from '../../core/backup-state.ts';
import { elapsed, type Instant, MAX_TIMER_DELAY, rfc3339 } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { Condition } from '../../core/health/condition.ts';
import type { Notice, NoticeReport } from '../../core/reports/notice.ts';
import {
  type ApplianceFacts,
  endOf,
  type Failing,
  failingFor,
  isPresent,
  isToldOnce,
  noticeOf,
  noticeOfHub,
  standing,
  staysAtStart,
} from '../../core/reports/notices.ts';
import type { Store } from '../../core/store.ts';
import type { Environment } from '../environment.ts';
import type { PortalClock } from '../time/portal-clock.ts';
import { type Moment, type NoticeRecord, readRecords, sinceTelling, telling, writeRecords } from './notice-record.ts';

/** How the hub and all its appliances stand. */
export interface HouseFacts {
  readonly conditions: readonly Condition[];
  readonly appliances: readonly ApplianceFacts[];
}

/** What {@link Notices} works with. */
export interface NoticesContext {
  readonly environment: Pick<Environment, 'clock' | 'timers' | 'log'>;
  readonly store: Pick<Store, 'setting' | 'saveSetting'>;
  readonly portalClock: Pick<PortalClock, 'confirmed'>;
}

const DAY = 86_400_000;
/** One that comes and goes is told newly so often in a day. */
const MAX_RAISED = 3;
/** After a change, so long until it is looked at: many come together, and each time all that was told is written. In ms. */
const SOON = 500;

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
  readonly #seen = new Map<string, Instant>();
  #look: (() => HouseFacts) | null = null;
  #carry: (report: NoticeReport) => void = () => undefined;
  #disarm: () => void = () => undefined;
  #round: Promise<void> = Promise.resolve();
  #soon = false;
  #ended = false;
  #unwritten = false;

  private constructor(context: NoticesContext, records: Map<string, NoticeRecord>) {
    this.#context = context;
    this.#records = records;
    this.#started = context.environment.clock.now();
  }

  static async load(context: NoticesContext): Promise<Notices> {
    return new Notices(context, readRecords(await context.store.setting(NOTICES_TOLD)));
  }

  /**
   * Begins to look.
   * @param look called when the hub is up, and from then on each minute and after every change
   * @param carry carries a report out of the house
   */
  begin(look: () => HouseFacts, carry: (report: NoticeReport) => void): void {
    this.#look = look;
    this.#carry = carry;
    this.#arm(0);
  }

  /** Something has changed: it is looked at soon. */
  changed(): void {
    if (this.#look === null || this.#soon) return;
    this.#soon = true;
    this.#arm(SOON);
  }

  /** The notices that stand and say what is known now, the gravest first: none says more than the conditions do. */
  standing(facts: HouseFacts): Notice[] {
    const present = [...this.#standing(facts, this.#moment()).values()].filter(({ isCurrent }) => isCurrent);
    const notices = present.map(({ notice }) => notice);
    return notices.sort((a, b) => (a.severity === b.severity ? 0 : a.severity === 'error' ? -1 : 1));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    this.#disarm();
    await this.#round;
  }

  #arm(delay: number): void {
    if (this.#ended) return;
    this.#disarm();
    this.#disarm = this.#context.environment.timers.after(delay, () => {
      this.#soon = false;
      this.#arm(MAX_TIMER_DELAY);
      this.#round = this.#round.then(() => this.#tellAll()).catch((error: unknown) => this.#failed(error));
    });
  }

  #failed(error: unknown): void {
    this.#context.environment.log.error('notices_failed', { error: messageOf(error) });
  }

  #moment(): Moment {
    const { environment, portalClock } = this.#context;
    return { now: environment.clock.now(), started: this.#started, confirmed: portalClock.confirmed };
  }

  /** By whom they are of: one of each appliance, and one of each problem of the hub. */
  #standing({ appliances, conditions }: HouseFacts, moment: Moment): Map<string, ActiveNotice> {
    const stand = new Map<string, ActiveNotice>();
    const seen = new Set<string>();
    for (const facts of appliances) {
      const key = keyOf(facts.name);
      const failing = this.#failing(key, facts, moment.now);
      if (failing !== null) seen.add(key);
      const fresh = noticeOf(facts, failing);
      const before = this.#records.get(key);
      const notice = before === undefined || before.over ? fresh : standing(before, { facts, notice: fresh });
      if (notice === null) continue;
      const isCurrent = notice.code === fresh?.code || isPresent(notice, facts.condition);
      stand.set(key, { notice, generation: facts.grant?.generation ?? null, isCurrent });
    }
    for (const condition of conditions) {
      if (condition.appliance !== null) continue;
      const key = `hub ${condition.code}`;
      seen.add(key);
      const notice = noticeOfHub(condition, this.#seenFor(key, moment.now));
      if (notice !== null) stand.set(key, { notice, generation: null, isCurrent: true });
    }
    const running = elapsed(moment.started, moment.now) ?? 0;
    for (const [key, { notice, over }] of this.#records) {
      const stays = !over && notice.appliance === null && staysAtStart(notice.code, running);
      if (stays && !stand.has(key)) stand.set(key, { notice, generation: null, isCurrent: seen.has(key) });
    }
    for (const key of this.#seen.keys()) if (!seen.has(key)) this.#seen.delete(key);
    return stand;
  }

  #failing(key: string, { condition, grant }: ApplianceFacts, now: Instant): Failing | null {
    if (grant === null || !grant.failing || condition === null) return null;
    const lasting = failingFor(this.#seenFor(key, now), grant.overdue);
    return { lasting, since: rfc3339(now.wall - lasting) };
  }

  #seenFor(key: string, now: Instant): number {
    const first = this.#seen.get(key) ?? now;
    this.#seen.set(key, first);
    return elapsed(first, now) ?? 0;
  }

  async #tellAll(): Promise<void> {
    if (this.#look === null || this.#ended) return;
    const facts = this.#look();
    const moment = this.#moment();
    const stand = this.#standing(facts, moment);
    const byKey = new Map(facts.appliances.map((one) => [keyOf(one.name), one]));
    const reports = [...stand].flatMap(([key, one]) => this.#reportOf(key, one, moment));
    for (const [key, record] of this.#records) {
      if (stand.has(key)) continue;
      if (!record.over && record.told !== null) {
        const message = endOf(record.notice, byKey.get(key));
        reports.push({ ...reportOf(record.notice, 'resolved'), message, what_to_do: 'Nothing' });
      }
      // How often it was told is remembered for as long as that counts.
      if (record.raised.every((one) => sinceTelling(one, moment) >= DAY)) this.#records.delete(key);
      else this.#records.set(key, { ...record, told: null, over: true });
    }
    if (reports.length > 0 || this.#unwritten) await this.#write();
    for (const report of reports) this.#tell(report);
  }

  /** What there is to tell of a notice that stands, if anything. */
  #reportOf(key: string, stands: ActiveNotice, moment: Moment): NoticeReport[] {
    const { notice, generation, isCurrent } = stands;
    const before = this.#records.get(key);
    const isNew = before === undefined || before.over || before.told === null || before.notice.code !== notice.code;
    const raised = (before?.raised ?? []).filter((one) => sinceTelling(one, moment) < DAY);
    const told = telling(moment);
    if (isNew) {
      const isBounded = raised.length >= MAX_RAISED;
      const record = { notice, generation, raised: isBounded ? raised : [...raised, told], over: false };
      // Of what was told as something else it is still told when that is over.
      this.#records.set(key, { ...record, told: isBounded ? (before?.told ?? null) : told });
      return isBounded ? [] : [reportOf(notice, 'raised')];
    }
    const isDue = isCurrent && isRepeated(before, moment);
    this.#records.set(key, { ...before, notice, generation, raised, ...(isDue && { told }) });
    return isDue ? [reportOf(notice, 'repeated')] : [];
  }

  async #write(): Promise<void> {
    const { store, environment } = this.#context;
    const kept = new Map([...this.#records].filter(([, { told, raised }]) => told !== null || raised.length > 0));
    try {
      await store.saveSetting(NOTICES_TOLD, writeRecords(kept));
      this.#unwritten = false;
    } catch (error) {
      if (!this.#unwritten) environment.log.warn('notices_not_stored', { error: messageOf(error) });
      this.#unwritten = true;
    }
  }

  #tell(report: NoticeReport): void {
    const { environment } = this.#context;
    const { notice, appliance, severity, message, what_to_do, status } = report;
    const level = status === 'resolved' ? 'info' : severity === 'error' ? 'error' : 'warn';
    environment.log.at(level, 'notice', { notice, appliance, severity, message, what_to_do, status });
    this.#carry(report);
  }
}

function keyOf(appliance: string): string {
  return `appliance ${appliance}`;
}

function reportOf({ code, ...notice }: Notice, status: NoticeReport['status']): NoticeReport {
  return { status, notice: code, ...notice };
}

/** Whether a notice that stands was told a day ago, and is to be told again. */
function isRepeated({ notice, told }: NoticeRecord, moment: Moment): boolean {
  return !isToldOnce(notice.code) && told !== null && sinceTelling(told, moment) >= DAY;
}

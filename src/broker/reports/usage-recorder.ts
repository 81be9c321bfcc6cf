import {
  countTokens,
  mergeUsage,
  type PendingUsage,
  type TokenCounts,
  type TokenUsage,
} from '../../core/appliances/usage.ts';
import { type Instant, MIN_PLAUSIBLE_TIME, utcDay, wallOffset } from '../../core/clock.ts';
import { messageOf } from '../../core/failure.ts';
import type { BrokerStore, Environment } from '../ports.ts';
import type { ReferenceClock } from '../time/reference-clock.ts';
import type { Scheduler } from '../time/scheduler.ts';

/**
 * Tokens are not written with other writes of their connection until the first of them is this old, in ms: a page for
 * each refresh would wear out the SD card for nothing.
 */
const MIN_WRITE_AGE = 6 * 3_600_000;
/**
 * The first token of an appliance at a connection is written after this long, in ms: a power cut before that makes the
 * appliance unused.
 */
const FIRST_WRITE_DELAY = 60_000;
const FIRST_WRITE_TASK = 'first usage';
/** The most pending runs of each appliance and connection; beyond that the oldest are dropped. One more than the days that count. */
const MAX_RUNS = 15;

/** Tokens of one day that are not written yet; times on the boot clock, in ms. */
interface Run {
  /** The id of the connection. */
  readonly connection: string;
  readonly first: number;
  last: number;
  count: number;
}

/** The usage of one appliance. */
interface ApplianceUsage {
  /** As it is in the store. */
  readonly written: TokenUsage | null;
  /** What is not in the store, the earliest first. */
  readonly runs: Run[];
}

/** What {@link UsageRecorder} needs. */
interface UsageContext {
  readonly environment: Pick<Environment, 'clock' | 'log'>;
  readonly store: Pick<BrokerStore, 'usage'>;
  readonly scheduler: Pick<Scheduler, 'plan'>;
  readonly referenceClock: ReferenceClock;
  /** The appliances that use a connection. @param connection its id */
  readonly usersOf: (connection: string) => readonly { readonly id: string }[];
  /** Whether there is an appliance with this id. */
  readonly exists: (appliance: string) => boolean;
}

/**
 * Records when each appliance got its last token, and how many it got on each day (UTC). Only the first token causes a
 * write: others are counted in memory, written along with something else of their connection some hours later, and when
 * the hub stops. A power cut costs what was not written.
 *
 * As in the history, pending tokens have times on the boot clock, which are converted to the wall clock as late as
 * possible. They are not written before the true time is confirmed, or, when the hub stops, if the wall clock is
 * implausible.
 *
 * On a site each hub records what it issues itself. It writes that from time to time, because the database of a site
 * has no SD card, and reads what the others have written.
 */
export class UsageRecorder implements PendingUsage, AsyncDisposable {
  readonly #context: UsageContext;
  readonly #usage: Map<string, ApplianceUsage>;
  /** On a site: the usage at each other hub, by the appliances' ids. */
  #others: ReadonlyMap<string, readonly TokenUsage[]> = new Map();

  private constructor(context: UsageContext, stored: ReadonlyMap<string, TokenUsage>) {
    this.#context = context;
    this.#usage = new Map([...stored].map(([appliance, written]) => [appliance, { written, runs: [] }]));
  }

  /** Continues with what the store has; begins anew if that can't be read. */
  static async load(context: UsageContext): Promise<UsageRecorder> {
    const stored = await context.store.usage.own().catch((error: unknown) => {
      context.environment.log.warn('usage_unreadable', { error: messageOf(error) });
      return new Map<string, TokenUsage>();
    });
    const recorder = new UsageRecorder(context, stored);
    await recorder.#readOthers();
    return recorder;
  }

  /** On a site: writes what this hub has issued, and reads what the others have written. */
  async share(): Promise<void> {
    await this.#writeConfirmed();
    await this.#readOthers();
  }

  async #readOthers(): Promise<void> {
    try {
      this.#others = await this.#context.store.usage.ofOthers();
    } catch (error) {
      this.#context.environment.log.debug('usage_of_others_unreadable', { error: messageOf(error) });
    }
  }

  /** Counts a token that an appliance got now. @param appliance its id @param connection the id of the connection */
  record(appliance: string, connection: string): void {
    const now = this.#context.environment.clock.now();
    const offset = this.#offset(now);
    const { written, runs } = this.#usage.get(appliance) ?? this.#add(appliance);
    const run = runs.findLast((one) => one.connection === connection);
    if (run !== undefined && utcDay(offset + run.last) === utcDay(offset + now.uptime)) {
      run.last = now.uptime;
      run.count += 1;
      return;
    }
    if (run === undefined && written?.connections?.[connection] === undefined) {
      const { scheduler } = this.#context;
      scheduler.plan(FIRST_WRITE_TASK, now.uptime + FIRST_WRITE_DELAY, () => void this.#writeConfirmed());
    }
    runs.push({ connection, first: now.uptime, last: now.uptime, count: 1 });
    const oldest = runs.filter((one) => one.connection === connection).at(-1 - MAX_RUNS);
    if (oldest !== undefined) runs.splice(runs.indexOf(oldest), 1);
  }

  /**
   * The tokens of an appliance, written or not, by the best known time; on a site at all hubs. `last` is the time of
   * the last one in ms since 1970, null if there was none.
   * @param appliance its id
   * @param connection the id of one that it uses; left out: all together
   */
  usageOf(
    appliance: string,
    now = this.#context.environment.clock.now(),
    connection?: string,
  ): TokenCounts & { readonly last: number | null } {
    const offset = this.#offset(now);
    const { written, runs = [] } = this.#usage.get(appliance) ?? {};
    const all = [written, toUsage(runs, offset), ...(this.#others.get(appliance) ?? [])];
    const [before, pending, ...others] =
      connection === undefined ? all : all.map((usage) => usage?.connections?.[connection]);
    const days = [before, pending, ...others].flatMap((usage) => usage?.days ?? []);
    const times = [pending ?? before, ...others].flatMap((usage) => usage?.last ?? []);
    const last = times.length === 0 ? null : Math.max(...times);
    return { last, ...countTokens(days, utcDay(offset + now.uptime)) };
  }

  pending(connection: string): ReadonlyMap<string, TokenUsage> {
    const { environment, referenceClock, usersOf } = this.#context;
    if (referenceClock.confirmed === null) return new Map();
    const users = usersOf(connection).map(({ id }) => id);
    const { uptime } = environment.clock.now();
    const isDue = users.some((id) => uptime - (this.#usage.get(id)?.runs[0]?.first ?? uptime) >= MIN_WRITE_AGE);
    return isDue ? this.#unwritten(users) : new Map();
  }

  markWritten(connection: string): void {
    // Nothing has been recorded since the write began, because it is synchronous.
    const users = this.#context.usersOf(connection).map(({ id }) => id);
    for (const [id, written] of this.#unwritten(users)) this.#usage.set(id, { written, runs: [] });
  }

  /** Writes everything that is not written yet, if the wall clock is plausible. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#writeAll();
  }

  async #writeConfirmed(): Promise<void> {
    if (this.#context.referenceClock.confirmed !== null) await this.#writeAll();
  }

  async #writeAll(): Promise<void> {
    const { environment, store } = this.#context;
    const now = environment.clock.now();
    const usage = this.#unwritten(this.#usage.keys());
    if (usage.size === 0 || this.#offset(now) + now.uptime < MIN_PLAUSIBLE_TIME) return;
    // What is recorded during the write is not part of it.
    const counts = new Map(
      [...usage.keys()].map((id) => [id, this.#usage.get(id)?.runs.map((run) => ({ ...run })) ?? []]),
    );
    try {
      await store.usage.save(usage);
    } catch (error) {
      environment.log.warn('usage_write_failed', { error: messageOf(error) });
      return;
    }
    for (const [id, written] of usage)
      this.#usage.set(id, { written, runs: this.#runsSince(id, counts.get(id) ?? []) });
  }

  /** The runs of an appliance without what was written of them. @param written the first runs, as they were then */
  #runsSince(id: string, written: readonly Run[]): Run[] {
    const { runs = [] } = this.#usage.get(id) ?? {};
    return runs.flatMap((run) => {
      const count =
        run.count - (written.find((one) => one.first === run.first && one.connection === run.connection)?.count ?? 0);
      return count > 0 ? [{ ...run, count }] : [];
    });
  }

  /** What the store must have of those of these appliances that got tokens since their last write. */
  #unwritten(appliances: Iterable<string>): ReadonlyMap<string, TokenUsage> {
    const now = this.#context.environment.clock.now();
    const offset = this.#offset(now);
    const today = utcDay(offset + now.uptime);
    const usage = new Map<string, TokenUsage>();
    for (const id of appliances) {
      const { written = null, runs = [] } = this.#usage.get(id) ?? {};
      const pending = toUsage(runs, offset);
      if (pending !== null) usage.set(id, mergeUsage(written, pending, today));
    }
    return usage;
  }

  #add(appliance: string): ApplianceUsage {
    // A new appliance is rare: the time to forget the removed ones.
    for (const id of this.#usage.keys()) if (!this.#context.exists(id)) this.#usage.delete(id);
    const added: ApplianceUsage = { written: null, runs: [] };
    this.#usage.set(appliance, added);
    return added;
  }

  #offset(now: Instant): number {
    return wallOffset(this.#context.referenceClock.confirmed, now);
  }
}

/**
 * Converts runs to days; null if there are none. A run that the conversion has moved across midnight counts for the day
 * of its last token.
 * @param offset from the boot clock to the wall clock, in ms
 */
function toUsage(runs: readonly Run[], offset: number): TokenUsage | null {
  if (runs.length === 0) return null;
  const byConnection = [...Map.groupBy(runs, ({ connection }) => connection)];
  const connections = Object.fromEntries(byConnection.map(([id, own]) => [id, sumRuns(own, offset)]));
  return { ...sumRuns(runs, offset), connections };
}

function sumRuns(runs: readonly Run[], offset: number): Omit<TokenUsage, 'connections'> {
  return {
    last: Math.round(offset + Math.max(...runs.map((run) => run.last))),
    days: runs.map((run) => ({ day: utcDay(offset + run.last), count: run.count })),
  };
}

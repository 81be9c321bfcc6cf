import type { Pool, PoolClient } from 'pg';
import type { Clock, Timers } from '../../core/clock.ts';
import { Failure, messageOf } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import { type DatabaseAddress, openPool } from './connections.ts';
import { isConflict, isOutage, isServerError, isTimeout, storeFailure } from './errors.ts';
import { type Sql, sqlOf } from './sql.ts';

/** How long a write is repeated, or its outcome asked for, in ms. */
const WRITE_TIME = 12_000;
/** The pause before the outcome is asked for again, in ms. */
const SETTLE_PAUSE = 300;
/** The news of a row that takes the place of a transaction that was not committed. */
const FENCE = 'fence';
/** The channel on which hubs tell each other what they have changed. */
export const CHANNEL = 'latchkey';
/** Characters of a notification; a longer one only says that there is news. */
const MAX_NOTIFICATION = 7000;

/** What a {@link SiteDatabase} needs. */
export interface DatabaseOptions {
  readonly address: DatabaseAddress;
  readonly hubId: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Pick<Random, 'uuid'>;
}

/** A transaction that writes. @param id its id in `changes`. @returns null if nothing is to be changed */
export type WriteWork<Result> = (sql: Sql, id: string) => Promise<Result | null>;

/** A notification. */
export interface Notification {
  readonly id: string;
  readonly hub: string;
  /** Null if it was too long. */
  readonly news: readonly string[] | null;
}

/** Since when the database can't be used, and why. `since` in ms since 1970, by the hub's clock. */
interface Outage {
  readonly since: number;
  readonly reason: string;
}

/** The connections to the database of a site: reads, and writes whose outcome is always known in the end. */
export class SiteDatabase implements AsyncDisposable {
  readonly #options: DatabaseOptions;
  readonly #pool: Pool;
  #outage: Outage | null = null;
  #outageListener: () => void = () => undefined;
  #isClosed = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#pool = openPool(options.address, options.hubId);
  }

  /** For people, such as `database home on db.example:5432`. */
  get description(): string {
    return this.#options.address.description;
  }

  /** Null while the database can be used. */
  get outage(): Outage | null {
    return this.#outage;
  }

  /** Calls `listener` when the database can no longer be used. */
  onOutage(listener: () => void): void {
    this.#outageListener = listener;
  }

  /** From now on reads and writes fail at once. */
  reportOutage(error: unknown): void {
    if (this.#outage !== null || this.#isClosed) return;
    this.#outage = { since: this.#options.clock.now().wall, reason: messageOf(error) };
    this.#outageListener();
  }

  /** From now on reads and writes are tried again. */
  reportReturn(): void {
    this.#outage = null;
  }

  /** Reads. @throws Failure `store_unreadable` */
  async read<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    this.#assertReachable('store_unreadable');
    try {
      return await this.run(work);
    } catch (error) {
      this.#noteOutage(error);
      throw storeFailure(error, 'store_unreadable', this.description);
    }
  }

  /** Reads several tables as they are at one moment. @throws Failure `store_unreadable` */
  readAtOnce<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    return this.read(async (sql) => {
      await sql.run('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const result = await work(sql);
      await sql.run('COMMIT');
      return result;
    });
  }

  /**
   * Writes in one transaction, and tells the other hubs. A transaction whose outcome is unknown, because the connection
   * broke during its commit, is asked for, and repeated if it was not committed.
   * @param news what changes, see `SiteNews`; empty for what concerns no other hub
   * @param hub the one that does not hear of it
   * @returns what `work` returns; null if it changes nothing
   * @throws Failure `store_unwritable`; the outcome may be unknown then
   */
  async write<Result>(
    news: readonly string[],
    work: WriteWork<Result>,
    hub = this.#options.hubId,
  ): Promise<Result | null> {
    const { clock, random } = this.#options;
    const deadline = clock.now().uptime + WRITE_TIME;
    for (;;) {
      this.#assertReachable('store_unwritable');
      const id = random.uuid();
      try {
        const result: { value?: Result } = {};
        try {
          return await this.#tryWrite({ id, hub, news }, work, result);
        } catch (error) {
          // Before the commit, the server rolls back what it has no answer for.
          if (!('value' in result) || result.value === undefined || isServerError(error)) throw error;
          if (await this.#wasCommitted(id, deadline)) return result.value;
          if (clock.now().uptime >= deadline) throw error;
        }
      } catch (error) {
        if (isConflict(error) && clock.now().uptime < deadline) continue;
        this.#noteOutage(error);
        throw storeFailure(error, 'store_unwritable', this.description);
      }
    }
  }

  /**
   * Writes what may be written twice, such as a lease: each statement is a transaction, and other hubs get no news.
   * @throws Failure `store_unwritable`
   */
  async touch<Result>(work: (sql: Sql) => Promise<Result>): Promise<Result> {
    this.#assertReachable('store_unwritable');
    try {
      return await this.run(work);
    } catch (error) {
      this.#noteOutage(error);
      throw storeFailure(error, 'store_unwritable', this.description);
    }
  }

  /** Runs statements on a connection of the pool. @throws the errors of `pg` */
  async run<Result>(work: (sql: Sql, client: PoolClient) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    try {
      const result = await work(sqlOf(client), client);
      client.release();
      return result;
    } catch (error) {
      // A connection in an unknown state is closed, and an open transaction ends with it.
      client.release(true);
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#pool.end();
  }

  /** @param committing gets the result when the commit is about to be sent */
  async #tryWrite<Result>(
    change: Notification & { readonly news: readonly string[] },
    work: WriteWork<Result>,
    committing: { value?: Result },
  ): Promise<Result | null> {
    const { id, hub, news } = change;
    return this.run(async (sql) => {
      await sql.run('BEGIN');
      const result = await work(sql, id);
      if (result === null) {
        await sql.run('ROLLBACK');
        return null;
      }
      const text = JSON.stringify(change);
      const short = JSON.stringify({ ...change, news: null } satisfies Notification);
      await sql.run(
        `WITH change AS (INSERT INTO changes (id, hub, news) VALUES ($1, $2, $3))
         SELECT CASE WHEN cardinality($3::text[]) > 0 THEN pg_notify('${CHANNEL}', $4) END`,
        ...[id, hub, news, text.length < MAX_NOTIFICATION ? text : short],
      );
      committing.value = result;
      await sql.run('COMMIT');
      return result;
    });
  }

  /**
   * Whether a transaction was committed. A row with its id takes its place, which waits for its end, so that it can't be
   * committed later.
   * @param deadline on the boot clock, in ms
   * @throws the errors of `pg` if that can't be known by then
   */
  async #wasCommitted(id: string, deadline: number): Promise<boolean> {
    const { clock, timers, hubId } = this.#options;
    for (;;) {
      try {
        return await this.run(async (sql) => {
          await sql.run(
            'INSERT INTO changes (id, hub, news) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
            ...[id, hubId, [FENCE]],
          );
          const [row] = await sql.all<{ news: string[] }>('SELECT news FROM changes WHERE id = $1', id);
          return row !== undefined && row.news[0] !== FENCE;
        });
      } catch (error) {
        if (clock.now().uptime >= deadline || !(isOutage(error) || isTimeout(error))) throw error;
        await timers.sleep(SETTLE_PAUSE);
      }
    }
  }

  #assertReachable(kind: 'store_unwritable' | 'store_unreadable'): void {
    if (this.#isClosed) throw new Failure(kind, 'the store was closed');
    if (this.#outage === null) return;
    throw new Failure(kind, `the site's ${this.description} can't be reached (${this.#outage.reason})`);
  }

  #noteOutage(error: unknown): void {
    if (isOutage(error)) this.reportOutage(error);
  }
}

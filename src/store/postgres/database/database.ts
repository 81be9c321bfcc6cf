import type { Pool } from 'pg';
import type { Clock, Timers } from '../../../core/clock.ts';
import { Failure, messageOf } from '../../../core/failure.ts';
import type { Random } from '../../../core/random.ts';
import { type DatabaseAddress, DatabaseSockets, MAX_CONNECTIONS, openPool } from './connections.ts';
import { isConflict, isOutage, isServerError, isTimeout, storeFailure } from './errors.ts';
import { inTransaction, type Statements, sqlOf } from './sql.ts';

/** How long a write is repeated, or its outcome asked for, in ms. */
const WRITE_TIME = 12_000;
/** The pause before the outcome is asked for again, in ms. */
const OUTCOME_RETRY_INTERVAL = 300;
/** The news of a row that takes the place of a transaction that was not committed. */
export const FENCE = 'fence';
/** The channel on which a hub tells the others, by its id, that it has changed something: `changes` says what. */
export const CHANNEL = 'latchkey';

/** What a {@link SiteDatabase} needs. */
interface DatabaseOptions {
  readonly address: DatabaseAddress;
  readonly hubId: string;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Pick<Random, 'uuid'>;
}

/** A transaction that writes. @param id its id in `changes`. @returns null if nothing is to be changed */
export type WriteWork<Result> = (sql: Statements, id: string) => Promise<Result | null>;

/** What a transaction writes about itself. */
interface Change {
  readonly id: string;
  readonly news: readonly string[];
}

/** Since when the database can't be used, and why. `since` in ms since 1970, by the hub's clock. */
interface Outage {
  readonly since: number;
  readonly reason: string;
}

/** The connections to the database of a site: reads, and writes whose outcome is always known in the end. */
export class SiteDatabase implements AsyncDisposable {
  readonly #options: DatabaseOptions;
  #pool: Pool;
  readonly #sockets = new DatabaseSockets();
  #outage: Outage | null = null;
  #outageListener: () => void = () => undefined;
  #isClosed = false;
  /** The news of this hub's writes whose outcome is unknown, by the ids of the transactions. */
  readonly #unknownWrites = new Map<string, readonly string[]>();
  /** Connections that no read or write has, and those that wait for one. */
  #free = MAX_CONNECTIONS;
  readonly #waiting: (() => void)[] = [];

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#pool = openPool(options.address, options.hubId, this.#sockets);
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
    if (this.#isClosed) return;
    const before = this.#outage;
    this.#outage = { since: before?.since ?? this.#options.clock.now().wall, reason: messageOf(error) };
    if (before === null) this.#outageListener();
  }

  /** From now on new connections are used: those of before may lead to a server that was replaced, or that hangs. */
  renewConnections(): void {
    void this.#pool.end().catch(() => undefined);
    this.#pool = openPool(this.#options.address, this.#options.hubId, this.#sockets);
  }

  /** From now on reads and writes are tried again. */
  reportReturn(): void {
    this.#outage = null;
  }

  /** Reads. @throws Failure `store_unreadable` */
  read<Result>(work: (sql: Statements) => Promise<Result>): Promise<Result> {
    return this.#attempt('store_unreadable', () => this.run(work));
  }

  /**
   * Writes in one transaction, and tells the other hubs. If the connection breaks during the commit, this finds out
   * whether the transaction was committed, and repeats it if not.
   * @param news what changes, see `SiteNews`; empty for what concerns no other hub
   * @returns what `work` returns; null if it changes nothing
   * @throws Failure `store_unwritable`; the outcome may be unknown then
   */
  write<Result>(news: readonly string[], work: WriteWork<Result>): Promise<Result | null> {
    const { clock, random } = this.#options;
    return this.#attempt('store_unwritable', async () => {
      const deadline = clock.now().uptime + WRITE_TIME;
      for (;;) {
        const id = random.uuid();
        const committing: { result?: Result } = {};
        try {
          return await this.#tryWrite({ id, news }, work, committing);
        } catch (error) {
          // Before the commit, the server rolls back what it has no answer for.
          const { result } = committing;
          const isUnknown = result !== undefined && !isServerError(error);
          if (isUnknown && (await this.#wasCommitted({ id, news }, deadline))) return result;
          if (!(isUnknown || isConflict(error)) || clock.now().uptime >= deadline) throw error;
          this.#assertReachable('store_unwritable');
        }
      }
    });
  }

  /**
   * Writes what may be written twice, such as a lease: each statement is a transaction, and other hubs get no news.
   * @throws Failure `store_unwritable`
   */
  writeIdempotently<Result>(work: (sql: Statements) => Promise<Result>): Promise<Result> {
    return this.#attempt('store_unwritable', () => this.run(work));
  }

  /** Runs statements on a connection of the pool. @throws the errors of `pg` */
  async run<Result>(work: (sql: Statements) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect();
    try {
      const result = await work(sqlOf(client));
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
    await this.#sockets.close(this.#options.timers);
  }

  /**
   * Takes the place of transactions whose outcome is unknown: waits for their end, and those that are not committed by
   * then never will be. Call it in a transaction.
   * @param ids of the transactions
   */
  async fence(sql: Statements, ids: readonly string[]): Promise<void> {
    await sql.run(
      `INSERT INTO changes (id, hub, news) SELECT id, $2, $3 FROM unnest($1::uuid[]) AS given (id) ORDER BY id
       ON CONFLICT DO NOTHING`,
      ...[ids, this.#options.hubId, [FENCE]],
    );
  }

  /**
   * Ends this hub's writes whose outcome was unknown: they were committed by then, or never will be.
   * @returns the news of them, which this hub has not got
   * @throws the errors of `pg`
   */
  async endUnknownWrites(): Promise<readonly string[]> {
    const writes = new Map(this.#unknownWrites);
    if (writes.size === 0) return [];
    await this.run((sql) => inTransaction(sql, () => this.fence(sql, [...writes.keys()])));
    for (const id of writes.keys()) this.#unknownWrites.delete(id);
    return [...writes.values()].flat();
  }

  /**
   * Runs a read or a write when a connection is free. It does not wait for one in the pool: that time is limited, and
   * would count as an outage.
   */
  async #attempt<Result>(kind: 'store_unwritable' | 'store_unreadable', work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      this.#assertReachable(kind);
      return await work();
    } catch (error) {
      if (isOutage(error)) this.reportOutage(error);
      throw storeFailure(error, kind, this.description);
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }

  /** @param committing gets the result when the commit is about to be sent */
  async #tryWrite<Result>(
    { id, news }: Change,
    work: WriteWork<Result>,
    committing: { result?: Result },
  ): Promise<Result | null> {
    return this.run(async (sql) => {
      await sql.run('BEGIN');
      const result = await work(sql, id);
      if (result === null) {
        await sql.run('ROLLBACK');
        return null;
      }
      await sql.run(
        `WITH change AS (INSERT INTO changes (id, hub, news) VALUES ($1, $2, $3))
         SELECT CASE WHEN cardinality($3::text[]) > 0 THEN pg_notify('${CHANNEL}', $2) END`,
        ...[id, this.#options.hubId, news],
      );
      committing.result = result;
      await sql.run('COMMIT');
      return result;
    });
  }

  /**
   * Whether a transaction was committed. A row with its id takes its place, which waits for its end, so that it can't
   * be committed later.
   * @param deadline on the boot clock, in ms
   * @throws the errors of `pg` if that can't be known by then; it counts as an outage
   */
  async #wasCommitted({ id, news }: Change, deadline: number): Promise<boolean> {
    const { clock, timers } = this.#options;
    for (;;) {
      try {
        return await this.run(async (sql) => {
          await this.fence(sql, [id]);
          const [row] = await sql.all<{ news: string[] }>('SELECT news FROM changes WHERE id = $1', id);
          return row !== undefined && row.news[0] !== FENCE;
        });
      } catch (error) {
        if (clock.now().uptime >= deadline || !(isOutage(error) || isTimeout(error))) {
          this.#unknownWrites.set(id, news);
          this.reportOutage(error);
          throw error;
        }
        await timers.sleep(OUTCOME_RETRY_INTERVAL);
      }
    }
  }

  #assertReachable(kind: 'store_unwritable' | 'store_unreadable'): void {
    if (this.#isClosed) throw new Failure(kind, 'the store was closed');
    if (this.#outage === null) return;
    throw new Failure(kind, `the site's ${this.description} can't be reached (${this.#outage.reason})`);
  }
}

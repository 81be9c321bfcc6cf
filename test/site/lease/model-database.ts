import { Failure } from '../../../src/core/failure.ts';
import type { WriteWork } from '../../../src/store/postgres/database/database.ts';
import type { Statements } from '../../../src/store/postgres/database/sql.ts';
import { isOlder, type RowVersion } from '../../../src/store/postgres/tables/site-grant-row.ts';
import { GrantStatements, type GrantTable, settlesAt, type TableDefect, type TableRow } from './grant-table.ts';

/** The database's clock at time 0, in ms since 1970. */
const EPOCH = Date.UTC(2031, 4, 5, 6);

/** The row of a grant as it was when an attempt was begun, and when that was, in ms from the start of the check. */
export interface BegunAttempt {
  readonly row: TableRow;
  readonly at: number;
}

/** The database that two hubs share: one table, its commits, and a clock. */
export class ModelDatabase {
  /** The current time, in ms from the start of the check. */
  time = 0;
  #table: GrantTable = new Map();
  /** The table before each commit since the last promotion. */
  #commits: GrantTable[] = [];
  /** How many servers were promoted, and how many of them a hub has seen. */
  timeline = 0;
  #knownTimeline = 0;
  #switchedAt: number | null = null;
  readonly #statements: GrantStatements;
  readonly #begun = new Map<string, BegunAttempt>();
  #onCommit: (hub: string, isNews: boolean) => void = () => undefined;

  constructor(defects: ReadonlySet<TableDefect> = new Set()) {
    this.#statements = new GrantStatements(defects);
  }

  /** By the database's clock, in ms since 1970. */
  get now(): number {
    return EPOCH + this.time;
  }

  get table(): GrantTable {
    return this.#table;
  }

  /** How many commits a promotion may lose. */
  get commits(): number {
    return this.#commits.length;
  }

  /** Calls `listener` with the hub whose transaction was committed, and whether other hubs get news of it. */
  onCommit(listener: (hub: string, isNews: boolean) => void): void {
    this.#onCommit = listener;
  }

  row(connection: string): TableRow | undefined {
    return this.#table.get(connection);
  }

  /** The last attempt that a hub has begun. @throws Error if there is none */
  begun(hub: string): BegunAttempt {
    const begun = this.#begun.get(hub);
    if (begun === undefined) throw new Error(`${hub} has begun no attempt`);
    return begun;
  }

  /** Statements of one transaction on a table that is not committed yet. */
  transaction(): {
    readonly sql: Statements;
    readonly table: () => GrantTable;
    /** Whether a statement has read rows that a hub remembers. */
    readonly isKept: () => boolean;
  } {
    let table = this.#table;
    let isKept = false;
    const execute = (text: string, values: readonly unknown[]) => {
      isKept ||= text.includes(' FROM grants WHERE sealed IS NOT NULL');
      const time = { now: this.now, switchedAt: this.#switchedAt };
      const result = this.#statements.execute(table, time, text, values);
      table = result.table;
      return result;
    };
    const sql: Statements = {
      all: async <Row>(text: string, ...values: unknown[]) => [...execute(text, values).rows] as Row[],
      run: async (text, ...values) => execute(text, values).count,
    };
    return { sql, table: () => table, isKept: () => isKept };
  }

  /** @param isNews whether other hubs get news of it */
  commit(table: GrantTable, hub: string, isNews: boolean): void {
    this.#commits.push(this.#table);
    const before = this.#table;
    this.#table = table;
    for (const [connection, row] of table) {
      const isBegun = row.holder === hub && row.attempt_id !== before.get(connection)?.attempt_id;
      if (isBegun) this.#begun.set(hub, { row, at: this.time });
    }
    this.#onCommit(hub, isNews);
  }

  /** Nothing of what was committed so far can be lost. */
  forgetCommits(): void {
    this.#commits = [];
  }

  /** A standby takes over that does not have the last commits. */
  promote(lost: number): void {
    if (lost > 0) this.#table = this.#commits.at(-lost) ?? this.#table;
    this.#commits = [];
    this.timeline += 1;
  }

  /** Until when a promotion settles, in ms from the start of the check; null if none does. */
  get settlesAt(): number | null {
    const at = settlesAt({ now: this.now, switchedAt: this.#switchedAt });
    return at === null ? null : at - EPOCH;
  }

  /** After a promotion grants are no longer confirmed; a model of `checkServer`. */
  checkServer(): void {
    if (this.#knownTimeline === this.timeline) return;
    this.#knownTimeline = this.timeline;
    this.unconfirm();
  }

  /** A switch to a server that may have lost commits begins to settle. */
  unconfirm(): void {
    this.#switchedAt = this.now;
    this.#table = new Map([...this.#table].map(([connection, row]) => [connection, { ...row, confirmed: false }]));
  }

  /** The last switch settles at once. */
  settle(): void {
    this.#switchedAt = null;
  }

  /** What everything that follows depends on. @param withHistory how many commits a promotion may lose */
  fingerprint(withHistory: number): string {
    const before = withHistory === 0 ? [] : this.#commits.slice(-withHistory).map((table) => [...table.values()]);
    const timelines = [this.timeline, this.#knownTimeline, this.#switchedAt];
    return JSON.stringify([[...this.#table.values()], before, timelines]);
  }
}

/** A read or write that a hub has asked for. */
export interface DatabaseCall {
  readonly number: number;
  readonly kind: 'read' | 'write';
  /** Whether the database has executed it. */
  readonly result: string | null;
  execute(): Promise<void>;
  answer(): void;
  /** The connection is lost. @returns what the database may still execute */
  lose(): Promise<Ghost | null>;
}

/** A statement that is under way to the database although its hub no longer waits for it. */
export interface Ghost {
  readonly text: string;
  execute(): Promise<void>;
}

/** The connections of one run of a hub to the database; a model of `SiteDatabase`. */
export class ModelConnections {
  readonly #database: ModelDatabase;
  readonly #hub: string;
  readonly #run: string;
  #numbers = 0;
  readonly calls: DatabaseCall[] = [];
  isAway = false;
  /** The newest version of the grant that an answer has shown. */
  seen: RowVersion = { generation: 0, revision: 0 };

  /** @param run names this run of the hub */
  constructor(database: ModelDatabase, hub: string, run: string) {
    this.#database = database;
    this.#hub = hub;
    this.#run = run;
  }

  read<Result>(work: (sql: Statements) => Promise<Result>): Promise<Result> {
    return this.#call('read', [], (sql) => work(sql)) as Promise<Result>;
  }

  write<Result>(news: readonly string[], work: WriteWork<Result>): Promise<Result | null> {
    return this.#call('write', news, work);
  }

  /** Nothing of what was lost is under way any more when it is asked for. */
  async fence(): Promise<void> {}

  #call<Result>(kind: 'read' | 'write', news: readonly string[], work: WriteWork<Result>): Promise<Result | null> {
    const failure = () =>
      new Failure(kind === 'read' ? 'store_unreadable' : 'store_unwritable', 'the database is away');
    if (this.isAway) return Promise.reject(failure());
    const { promise, resolve, reject } = Promise.withResolvers<Result | null>();
    let outcome: { readonly value: Result | null } | null = null;
    const end = () => void this.calls.splice(this.calls.indexOf(call), 1);
    const database = this.#database;
    const number = this.#numbers++;
    const id = `${this.#run}-${number}`;
    let shown: readonly [before: RowVersion, after: RowVersion] | null = null;
    const call = {
      number,
      kind,
      result: null as string | null,
      execute: async () => {
        const { sql, table, isKept } = database.transaction();
        const before = versionIn(database.table);
        const value = await work(sql, id);
        if (kind === 'write' || isKept()) shown = [before, versionIn(table())];
        if (kind === 'write' && value !== null) database.commit(table(), this.#hub, news.length > 0);
        outcome = { value };
        // What a write does in the hub depends on when it is done.
        call.result = JSON.stringify([value, kind === 'write' ? database.time : null]);
      },
      answer: () => {
        end();
        if (shown !== null) this.seen = seenAfter(this.seen, kind, ...shown);
        resolve(outcome?.value ?? null);
      },
      lose: async () => {
        end();
        const statement = kind === 'write' && outcome === null ? await captured(work, id) : null;
        reject(failure());
        return statement === null ? null : this.#ghost(statement, news);
      },
    };
    this.calls.push(call);
    return promise;
  }

  #ghost([text, values]: Statement, news: readonly string[]): Ghost {
    return {
      text: JSON.stringify([text, values]),
      execute: async () => {
        const { sql, table } = this.#database.transaction();
        if ((await sql.run(text, ...values)) > 0) this.#database.commit(table(), this.#hub, news.length > 0);
      },
    };
  }
}

/** The version of the one grant that a check has. */
function versionIn(table: GrantTable): RowVersion {
  const [row] = table.values();
  return { generation: row?.generation ?? 0, revision: row?.revision ?? 0 };
}

/** The newest version that a hub knows after a call. A write shows what was there before only if it depends on that. */
function seenAfter(seen: RowVersion, kind: 'read' | 'write', before: RowVersion, after: RowVersion): RowVersion {
  const isShown = kind === 'read' || after.generation > before.generation || !isOlder(seen, before);
  return isShown && isOlder(seen, after) ? after : seen;
}

type Statement = readonly [text: string, values: readonly unknown[]];

/** The first statement of a transaction that nobody answers; null if a commit would need an answer to it first. */
async function captured(work: WriteWork<unknown>, id: string): Promise<Statement | null> {
  let first: Statement | null = null;
  const capture = (text: string, values: unknown[]): Promise<never> => {
    first ??= [text, values];
    return new Promise(() => undefined);
  };
  void work({ all: (text, ...values) => capture(text, values), run: (text, ...values) => capture(text, values) }, id);
  const [text = ''] = first ?? [];
  return text.startsWith('SELECT') ? null : first;
}

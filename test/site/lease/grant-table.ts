// What PostgreSQL does with the statements about grants in src/store/postgres/tables, on rows in memory.

import { REFRESH_LEASE, SETTLING_TIME } from '../../../src/store/postgres/link/site-state.ts';

/** A row of `grants`. `leased_until` in ms since 1970, by the database's clock. */
export interface TableRow {
  readonly connection: string;
  readonly generation: number;
  readonly sealed: string | null;
  readonly attempt: string | null;
  readonly attempt_id: string | null;
  readonly holder: string | null;
  readonly leased_until: number | null;
  readonly doubt: string | null;
  readonly refused: string | null;
  readonly distrusted: string | null;
  readonly misconfigured: string | null;
  readonly revision: number;
  readonly confirmed: boolean;
}

/** When a statement is executed, in ms since 1970 by the database's clock. */
export interface StatementTime {
  readonly now: number;
  /** The last switch to a server that may have lost commits; null if there was none. */
  readonly switchedAt: number | null;
}

/** Until when a switch to another server settles, in ms since 1970; null if it has. */
export function settlesAt({ now, switchedAt }: StatementTime): number | null {
  return switchedAt === null || now > switchedAt + SETTLING_TIME ? null : switchedAt + SETTLING_TIME;
}

/** The rows by connection. */
export type GrantTable = ReadonlyMap<string, TableRow>;

/** Deliberate defects of the statements, for proofs that the check finds them. */
export type TableDefect =
  /** An attempt begins although another one is open, and whatever has changed since the grant was read. */
  | 'begin_ignores_lease_and_revision'
  /** An attempt begins although another hub has begun and ended one since the grant was read. */
  | 'begin_ignores_revision'
  /** An attempt has no lease: its end is when it begins. */
  | 'lease_of_no_time'
  /** An attempt is begun without the doubt that led to it. */
  | 'begin_drops_doubt'
  /** An attempt begins although another hub may soon write a newer version again. */
  | 'begin_while_settling'
  /** The end of an attempt does not save its doubt. */
  | 'end_drops_doubt'
  /** The end of an attempt ends whatever attempt is open. */
  | 'end_ignores_attempt_id'
  /** The end of an attempt ends one of another hub whose lease is about to end. */
  | 'end_ignores_lease'
  /** New tokens replace those of any generation. */
  | 'replace_ignores_generation'
  /** A deleted grant leaves its generation, so that a late write replaces it. */
  | 'forget_keeps_generation'
  /** New tokens leave the attempt open. */
  | 'replace_keeps_attempt';

/** The rows that a statement returns, how many it has changed, and the table after it. */
interface StatementResult {
  readonly rows: readonly object[];
  readonly count: number;
  readonly table: GrantTable;
}

const NO_ATTEMPT = { attempt: null, attempt_id: null, holder: null, leased_until: null };

/** Executes statements on tables. */
export class GrantStatements {
  readonly #defects: ReadonlySet<TableDefect>;

  constructor(defects: ReadonlySet<TableDefect> = new Set()) {
    this.#defects = defects;
  }

  /** @throws Error for a statement that the model does not know */
  execute(table: GrantTable, time: StatementTime, text: string, values: readonly unknown[]): StatementResult {
    const statement = text.replaceAll(/\s+/g, ' ').trim();
    const found = this.#statements.find(([pattern]) => pattern.test(statement));
    if (found === undefined) throw new Error(`the model does not know this statement: ${statement}`);
    return found[1](table, time, values);
  }

  readonly #statements: readonly (readonly [
    RegExp,
    (table: GrantTable, time: StatementTime, values: readonly unknown[]) => StatementResult,
  ])[] = [
    [
      /^SELECT connection, generation, .* FROM grants WHERE sealed IS NOT NULL AND \(\$1::text\[\] IS NULL OR/,
      (table, _time, [connections]) =>
        select(
          table,
          (row) => row.sealed !== null && (connections as string[] | null)?.includes(row.connection) !== false,
        ),
    ],
    [
      /^SELECT connection, generation, .* FROM grants WHERE connection = \$1( FOR UPDATE)?$/,
      (table, time, [connection]) => {
        const found = select(table, (row) => row.connection === connection);
        return { ...found, rows: found.rows.map((row) => ({ ...row, is_settling: settlesAt(time) !== null })) };
      },
    ],
    [
      /^SELECT connection, generation, .* FROM grants WHERE connection = ANY \(\$1\)$/,
      (table, _time, [connections]) => select(table, (row) => (connections as string[]).includes(row.connection)),
    ],
    [
      /^UPDATE grants SET attempt = \$1, attempt_id = \$2, holder = \$3, doubt = \$4/,
      (...call) => this.#begin(...call),
    ],
    [/^UPDATE grants SET attempt = NULL, .*, doubt = \$1, refused = \$2/, (...call) => this.#end(...call)],
    [
      /^UPDATE grants SET distrusted = \$1, revision = revision \+ confirmed::int WHERE connection = \$2 AND generation = \$3/,
      (table, _time, [distrusted, connection, generation]) =>
        update(
          table,
          (row) => row.connection === connection && row.generation === generation && row.sealed !== null,
          (row) => ({ ...row, distrusted: distrusted as string, revision: row.revision + (row.confirmed ? 1 : 0) }),
        ),
    ],
    [/^UPDATE grants SET generation = \$2, sealed = \$3/, (...call) => this.#replace(...call)],
    [
      /^UPDATE grants SET generation = generation \+ 1, sealed = NULL, .* WHERE connection = \$1 AND generation = \$2/,
      (table, _time, [connection, generation]) =>
        update(
          table,
          (row) => row.connection === connection && row.generation === generation && row.sealed !== null,
          (row) => ({
            ...row,
            ...NO_ATTEMPT,
            sealed: null,
            doubt: null,
            refused: null,
            distrusted: null,
            generation: row.generation + (this.#defects.has('forget_keeps_generation') ? 0 : 1),
            misconfigured: null,
            revision: row.revision + 1,
            confirmed: true,
          }),
        ),
    ],
    [/^INSERT INTO grants .* SELECT \$1, .* ON CONFLICT DO NOTHING/, insert],
    [/^INSERT INTO grants .* ON CONFLICT \(connection\) DO UPDATE SET/, overwrite],
    [
      /^SELECT generation, grants.revision, attempt_id, doubt, refused, .* AS settling, .* AS is_deleted FROM connections LEFT JOIN grants .* WHERE id = \$1/,
      selectLocked,
    ],
    [
      /^UPDATE grants SET attempt = NULL, .*, revision = revision \+ 1 WHERE attempt_id = ANY/,
      (table, _time, [ids]) =>
        update(
          table,
          (row) => row.attempt_id !== null && (ids as string[]).includes(row.attempt_id),
          (row) => ({ ...row, ...NO_ATTEMPT, revision: row.revision + 1 }),
        ),
    ],
    [
      /^UPDATE grants SET confirmed = false WHERE sealed IS NOT NULL$/,
      (table) =>
        update(
          table,
          (row) => row.sealed !== null,
          (row) => ({ ...row, confirmed: false }),
        ),
    ],
  ];

  #begin(table: GrantTable, time: StatementTime, values: readonly unknown[]): StatementResult {
    const [attempt, id, hub, doubt, lease, connection, generation, revision, isRefused] = values;
    const ignoresOthers = this.#defects.has('begin_ignores_lease_and_revision');
    const ignoresRevision = this.#defects.has('begin_ignores_revision');
    const leaseTime = this.#defects.has('lease_of_no_time') ? 0 : (lease as number);
    const isSettling = settlesAt(time) !== null && !this.#defects.has('begin_while_settling');
    return update(
      table,
      (row) =>
        row.connection === connection &&
        row.generation === generation &&
        row.sealed !== null &&
        (ignoresOthers || ignoresRevision || row.revision === revision) &&
        (ignoresOthers || row.attempt === null || row.holder === hub) &&
        ((row.confirmed && row.doubt === null) || doubt !== null) &&
        (row.refused === null || isRefused === true) &&
        (row.confirmed || !isSettling),
      (row) => ({
        ...row,
        attempt: attempt as string,
        attempt_id: id as string,
        holder: hub as string,
        leased_until: time.now + leaseTime,
        doubt: this.#defects.has('begin_drops_doubt') ? null : (doubt as string | null),
        revision: row.revision + 1,
      }),
    );
  }

  #end(table: GrantTable, { now }: StatementTime, values: readonly unknown[]): StatementResult {
    const [doubt, refused, misconfigured, connection, generation, revision, attempt, hub] = values;
    const ignoredTime = this.#defects.has('end_ignores_lease') ? 60_000 : 0;
    const ignoresAttempt = this.#defects.has('end_ignores_attempt_id');
    return update(
      table,
      (row) =>
        row.connection === connection &&
        row.generation === generation &&
        row.sealed !== null &&
        (row.attempt === null ? row.revision === revision : ignoresAttempt || row.attempt_id === attempt) &&
        (row.holder === null ||
          row.holder === hub ||
          (row.leased_until ?? 0) < now + ignoredTime ||
          (row.leased_until ?? 0) > now + REFRESH_LEASE),
      (row) => ({
        ...row,
        ...NO_ATTEMPT,
        doubt: this.#defects.has('end_drops_doubt') ? row.doubt : (doubt as string | null),
        refused: refused as string | null,
        misconfigured: misconfigured as string | null,
        revision: row.revision + 1,
      }),
    );
  }

  #replace(table: GrantTable, _time: StatementTime, values: readonly unknown[]): StatementResult {
    const next = writtenRow(values);
    const ignoresGeneration = this.#defects.has('replace_ignores_generation');
    return update(
      table,
      (row) => row.connection === next.connection && (ignoresGeneration || row.generation === next.generation - 1),
      (row) => {
        const { attempt, attempt_id, holder, leased_until } = row;
        const open = this.#defects.has('replace_keeps_attempt') ? { attempt, attempt_id, holder, leased_until } : {};
        const isLate = attempt_id !== (values[7] ?? attempt_id);
        const wasSentAgain = attempt_id !== null || /"sends":([2-9]|\d\d)/.test(row.doubt ?? '');
        const doubt = isLate && wasSentAgain ? row.doubt : next.doubt;
        return { ...next, ...open, doubt, revision: row.revision + 1 };
      },
    );
  }
}

/** The row of new tokens. */
function writtenRow(values: readonly unknown[]): TableRow {
  const [connection, generation, sealed, doubt, refused, distrusted, misconfigured] = values as string[];
  const texts = { connection, sealed, doubt, refused, distrusted, misconfigured };
  return { ...texts, ...NO_ATTEMPT, generation: Number(generation), revision: 1, confirmed: true } as TableRow;
}

function insert(table: GrantTable, _time: StatementTime, values: readonly unknown[]): StatementResult {
  const row = writtenRow(values);
  if (table.has(row.connection)) return { rows: [], count: 0, table };
  return { rows: [row], count: 1, table: new Map([...table, [row.connection, row]]) };
}

function overwrite(table: GrantTable, _time: StatementTime, values: readonly unknown[]): StatementResult {
  const written = writtenRow(values);
  const [revision, attempt, attempt_id, holder, leased_until, generation, before] = values.slice(7);
  const row = { ...written, revision, confirmed: false, attempt, attempt_id, holder, leased_until } as TableRow;
  const found = table.get(row.connection);
  if (found !== undefined && (found.generation !== generation || found.revision !== before))
    return { rows: [], count: 0, table };
  const distrusted = row.distrusted ?? (found?.generation === row.generation ? found.distrusted : null);
  return { rows: [row], count: 1, table: new Map([...table, [row.connection, { ...row, distrusted }]]) };
}

/** The table of connections is not modelled: the one of the check exists. */
function selectLocked(table: GrantTable, time: StatementTime, [connection]: readonly unknown[]): StatementResult {
  const row = table.get(connection as string);
  const { generation = null, revision = null, attempt_id = null, doubt = null, refused = null } = row ?? {};
  const [settling, is_deleted] = [settlesAt(time) !== null, row?.sealed === null];
  const found = { generation, revision, attempt_id, doubt, refused, settling, is_deleted };
  return { rows: [found], count: 1, table };
}

function select(table: GrantTable, where: (row: TableRow) => boolean): StatementResult {
  const rows = [...table.values()].filter(where);
  return { rows, count: rows.length, table };
}

function update(
  table: GrantTable,
  where: (row: TableRow) => boolean,
  set: (row: TableRow) => TableRow,
): StatementResult {
  const rows = [...table.values()].filter(where).map(set);
  return { rows, count: rows.length, table: new Map([...table, ...rows.map((row) => [row.connection, row] as const)]) };
}

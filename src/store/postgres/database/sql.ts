import type { ClientBase, QueryResult } from 'pg';

/** Statements of one connection. Each text is prepared once. */
export interface Statements {
  /** The rows that a statement returns. */
  all<Row>(text: string, ...values: unknown[]): Promise<Row[]>;
  /** @returns how many rows were changed */
  run(text: string, ...values: unknown[]): Promise<number>;
}

const names = new Map<string, string>();

/** A name for a statement: with it the server parses the text only once for each connection. */
function nameOf(text: string): string {
  const known = names.get(text);
  if (known !== undefined) return known;
  const name = `latchkey-${names.size}`;
  names.set(text, name);
  return name;
}

/** The statements of a connection. @throws the errors of `pg` */
export function sqlOf(client: ClientBase): Statements {
  const query = (text: string, values: unknown[]): Promise<QueryResult> =>
    client.query({ name: nameOf(text), text, values });
  return {
    all: async <Row>(text: string, ...values: unknown[]) => (await query(text, values)).rows as Row[],
    run: async (text, ...values) => (await query(text, values)).rowCount ?? 0,
  };
}

/** SQL: whether a commit waits until a standby has it on its disk. */
export const IS_SYNCHRONOUS = `current_setting('synchronous_standby_names') <> ''
  AND current_setting('synchronous_commit') IN ('on', 'remote_apply')`;

/** Runs statements in a transaction. If one fails, the connection must be closed. @throws the errors of `pg` */
export async function inTransaction<Result>(
  sql: Statements,
  work: (sql: Statements) => Promise<Result>,
): Promise<Result> {
  await sql.run('BEGIN');
  const result = await work(sql);
  await sql.run('COMMIT');
  return result;
}

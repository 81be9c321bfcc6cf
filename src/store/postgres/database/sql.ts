import type { ClientBase } from 'pg';

/** Statements of one connection. */
export interface Statements {
  /** The rows that a statement returns. */
  all<Row>(text: string, ...values: unknown[]): Promise<Row[]>;
  /** @returns how many rows were changed */
  run(text: string, ...values: unknown[]): Promise<number>;
}

/** The statements of a connection. @throws the errors of `pg` */
export function sqlOf(client: ClientBase): Statements {
  return {
    all: async <Row>(text: string, ...values: unknown[]) => (await client.query(text, values)).rows as Row[],
    run: async (text, ...values) => (await client.query(text, values)).rowCount ?? 0,
  };
}

/** SQL: whether a commit waits until a standby has it on its disk. */
export const IS_SYNCHRONOUS = `current_setting('synchronous_standby_names') <> ''
  AND current_setting('synchronous_commit') IN ('on', 'remote_apply')`;

/**
 * Runs statements in a transaction. If one fails, the connection must be closed.
 * @param mode such as `READ ONLY`
 * @throws the errors of `pg`
 */
export async function inTransaction<Result>(
  sql: Statements,
  work: (sql: Statements) => Promise<Result>,
  mode = '',
): Promise<Result> {
  await sql.run(`BEGIN ${mode}`);
  const result = await work(sql);
  await sql.run('COMMIT');
  return result;
}

import type { Database } from 'better-sqlite3';
import * as v from 'valibot';

/**
 * Reads the valid rows of a table. In a damaged table these are the ones before and after the damage.
 * @param key the column that identifies a row
 * @returns `damage`: why rows are missing; null if none is
 */
export function readRows<Row>(
  database: Database,
  table: string,
  schema: v.GenericSchema<unknown, Row>,
  key: string,
): { readonly rows: Row[]; readonly damage: string | null } {
  const rows = new Map<unknown, Row>();
  let damage: string | null = null;
  for (const order of ['ASC', 'DESC']) {
    try {
      for (const raw of database.prepare(`SELECT * FROM ${table} ORDER BY ${key} ${order}`).iterate()) {
        const row = v.safeParse(schema, raw);
        if (row.success) rows.set(Reflect.get(Object(raw), key), row.output);
        else damage ??= `a row of ${table} is invalid`;
      }
      break;
    } catch (error) {
      damage ??= sqliteErrorCode(error);
    }
  }
  return { rows: [...rows.values()], damage };
}

/** SQLite's code of an error, such as `SQLITE_CORRUPT`; another error as text. */
export function sqliteErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}

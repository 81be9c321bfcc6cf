import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';

/** Runs SQL on a store that no hub has open, as an attacker with write access can. @param path the state directory */
export function runSql(path: string, statements: string, file = 'latchkey.db'): void {
  const database = new Database(join(path, file));
  database.exec(statements);
  database.close();
}

/** Overwrites the first page of a table with noise. */
export function corruptTable(path: string, table: string): void {
  const file = join(path, 'latchkey.db');
  const database = new Database(file);
  const root = database.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(table);
  const size = Number(database.pragma('page_size', { simple: true }));
  database.close();
  const end = Number(root) * size;
  writeFileSync(file, readFileSync(file).fill(0xa5, end - size, end));
}

/** Adds appliances named `appliance-N` to a store that is not open. */
export function addAppliancesBySql(directory: string, count: number): void {
  const ids = `WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${count}),
    ids AS (SELECT i, printf('%08d-0000-4000-8000-000000000000', i) AS id FROM n)`;
  runSql(
    directory,
    `${ids} INSERT INTO connections (id, name, portal, sealed) SELECT id, 'appliance-' || i, 'home', '' FROM ids;
    ${ids} INSERT INTO appliances (id, client_id, name, connection, sealed)
    SELECT id, id, 'appliance-' || i, id, '' FROM ids`,
  );
}

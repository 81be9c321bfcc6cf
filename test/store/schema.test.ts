import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { prepareSchema, SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts';
import { storeFiles } from '../../src/store/store-files.ts';
import { memoryStateFolder } from '../support/state-folder.ts';

const tablesOf = (database: Database.Database) =>
  database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
const versionOf = (database: Database.Database) => database.pragma('user_version', { simple: true });

test('a new store has the schema of this version and small pages, and only one file after it is closed', () => {
  using folder = memoryStateFolder();
  const database = openDatabase(storeFiles(folder.path));
  expect(versionOf(database)).toBe(SCHEMA_VERSION);
  expect(database.pragma('foreign_keys', { simple: true })).toBe(1);
  expect(database.pragma('page_size', { simple: true })).toBe(1024);
  database.close();
  expect(readdirSync(folder.path)).toEqual(['latchkey.db']);
});

test('tables that can not all be created leave no trace, and are created at the next start', () => {
  using folder = memoryStateFolder();
  const database = new Database(join(folder.path, 'latchkey.db'));
  // The last statement creates this table.
  database.exec('CREATE TABLE usage (line TEXT)');
  expect(() => prepareSchema(database, 'a store')).toThrow('table usage already exists');
  expect([tablesOf(database), versionOf(database)]).toEqual([['usage'], 0]);
  database.exec('DROP TABLE usage');
  prepareSchema(database, 'a store');
  expect(tablesOf(database)).toContain('grants');
  expect(versionOf(database)).toBe(SCHEMA_VERSION);
  database.close();
});

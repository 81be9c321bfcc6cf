import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/database.ts';
import { migrate, NEWEST_SCHEMA } from '../../src/store/migrations.ts';
import { storeFiles } from '../../src/store/store-files.ts';
import { stateInMemory } from '../support/state-folder.ts';

const tablesOf = (database: Database.Database) =>
  database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
const versionOf = (database: Database.Database) => database.pragma('user_version', { simple: true });

test('a new store has the newest schema, small pages, and no file beside it when it is closed', () => {
  using folder = stateInMemory();
  const database = openDatabase(storeFiles(folder.path));
  expect(versionOf(database)).toBe(NEWEST_SCHEMA);
  expect(database.pragma('page_size', { simple: true })).toBe(1024);
  database.close();
  expect(readdirSync(folder.path)).toEqual(['latchkey.db']);
});

test('a step that fails leaves nothing of itself behind, and is tried again at the next start', () => {
  using folder = stateInMemory();
  const database = new Database(join(folder.path, 'latchkey.db'));
  // The first step makes it last.
  database.exec('CREATE TABLE history (line TEXT)');
  expect(() => migrate(database)).toThrow('table history already exists');
  expect([tablesOf(database), versionOf(database)]).toEqual([['history'], 0]);
  database.exec('DROP TABLE history');
  migrate(database);
  expect(tablesOf(database)).toContain('grants');
  expect(versionOf(database)).toBe(NEWEST_SCHEMA);
  database.close();
});

test.each([
  [NEWEST_SCHEMA + 1, { code: 'store_newer', message: expect.stringMatching(/written by a newer Latchkey/) }],
  [-1, { code: 'store_unreadable' }],
  [10_000, { code: 'store_unreadable' }],
])('a schema %i is refused, and stays as it is', (schema, failure) => {
  using folder = stateInMemory();
  const database = new Database(join(folder.path, 'latchkey.db'));
  database.pragma(`user_version = ${schema}`);
  expect(() => migrate(database)).toThrow(expect.objectContaining(failure));
  expect([tablesOf(database), versionOf(database)]).toEqual([[], schema]);
  database.close();
});

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { MIGRATIONS, migrate, NEWEST_SCHEMA } from '../../src/store/sqlite/migrations.ts';
import { checkKeys } from '../../src/store/sqlite/recovery/salvage.ts';
import { storeFiles } from '../../src/store/store-files.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { KEY, open } from './test-store.ts';

const tablesOf = (database: Database.Database) =>
  database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
const versionOf = (database: Database.Database) => database.pragma('user_version', { simple: true });

test('a new store has the newest schema and small pages, and only one file after it is closed', () => {
  using folder = memoryStateFolder();
  const database = openDatabase(storeFiles(folder.path), []);
  expect(versionOf(database)).toBe(NEWEST_SCHEMA);
  expect(database.pragma('page_size', { simple: true })).toBe(1024);
  database.close();
  expect(readdirSync(folder.path)).toEqual(['latchkey.db']);
});

test('a migration that fails leaves no trace and runs again at the next start', () => {
  using folder = memoryStateFolder();
  const database = new Database(join(folder.path, 'latchkey.db'));
  // The last statement of the first migration creates this table.
  database.exec('CREATE TABLE history (line TEXT)');
  expect(() => migrate(database, [])).toThrow('table history already exists');
  expect([tablesOf(database), versionOf(database)]).toEqual([['history'], 0]);
  database.exec('DROP TABLE history');
  migrate(database, []);
  expect(tablesOf(database)).toContain('grants');
  expect(versionOf(database)).toBe(NEWEST_SCHEMA);
  database.close();
});

test('a store of an older schema is migrated only after its key was verified', async () => {
  using folder = memoryStateFolder();
  {
    using store = open(folder.path);
    await store.saveSetting('hub_id', 'latchkey-1');
  }
  const steps = [...MIGRATIONS, 'CREATE TABLE later (line TEXT)'];
  const openWith = (key: Uint8Array) =>
    openDatabase(storeFiles(folder.path), [jweSealing(key)], (found) => checkKeys(found, [jweSealing(key)]), steps);
  expect(() => openWith(new Uint8Array(STORE_KEY_BYTES))).toThrow(expect.objectContaining({ code: 'store_key_wrong' }));
  const before = new Database(join(folder.path, 'latchkey.db'));
  expect([versionOf(before), tablesOf(before).includes('later')]).toEqual([NEWEST_SCHEMA, false]);
  before.close();
  const after = openWith(KEY);
  expect([versionOf(after), tablesOf(after).includes('later')]).toEqual([NEWEST_SCHEMA + 1, true]);
  after.close();
});

test.each([
  [NEWEST_SCHEMA + 1, { code: 'store_newer', message: expect.stringMatching(/written by a newer Latchkey/) }],
  [-1, { code: 'store_unreadable' }],
  [10_000, { code: 'store_unreadable' }],
])('a store with schema %i is refused and left as it is', (schema, failure) => {
  using folder = memoryStateFolder();
  const database = new Database(join(folder.path, 'latchkey.db'));
  database.pragma(`user_version = ${schema}`);
  expect(() => migrate(database, [])).toThrow(expect.objectContaining(failure));
  expect([tablesOf(database), versionOf(database)]).toEqual([[], schema]);
  database.close();
});

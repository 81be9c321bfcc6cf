import { join } from 'node:path';
import Database from 'better-sqlite3';
import { writeSealed } from '../../src/store/resealing.ts';
import { salvage } from '../../src/store/salvage.ts';
import { jweSealing } from '../../src/store/sealing.ts';
import { KEY } from './opened.ts';

/** Makes a store of today one of schema 2: sealed with the key itself, without authentication codes and a history. */
export function makeSchema2(path: string, file = 'latchkey.db'): void {
  const sealing = jweSealing(KEY);
  const database = new Database(join(path, file));
  writeSealed(database, salvage(database, [sealing], sealing.before ?? sealing));
  for (const table of ['appliances', 'sessions', 'invites', 'pairings']) {
    database.exec(`ALTER TABLE ${table} DROP COLUMN mac`);
  }
  database.exec('DROP TABLE history; PRAGMA user_version = 2');
  database.close();
}

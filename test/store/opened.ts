import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Appliance } from '../../src/core/appliance.ts';
import { openDatabase } from '../../src/store/database.ts';
import { openStore } from '../../src/store/open-store.ts';
import { jweSealing, KEY_BYTES } from '../../src/store/sealing.ts';
import { SqliteStore } from '../../src/store/sqlite-store.ts';
import { storeFiles } from '../../src/store/store-files.ts';

const KEY = new Uint8Array(KEY_BYTES).fill(7);

/** A store that is known to be sound. */
export function open(path: string): SqliteStore {
  const files = storeFiles(path);
  const reopen = () => ({ database: openDatabase(files), unwritable: null, recovered: null });
  return new SqliteStore(files, reopen(), jweSealing(KEY), async () => reopen());
}

/** The store as a hub opens it. */
export function openAsHub(path: string, key: Uint8Array = KEY): Promise<SqliteStore> {
  return openStore(path, jweSealing(key), () => Date.UTC(2031, 4, 5, 6));
}

export const WALLBOX: Appliance = {
  id: '11111111-1111-4111-8111-111111111111',
  name: 'wallbox',
  scope: 'Monitoring',
  portal: 'home',
  secretHash: 'a-hash',
};
export const HEATER: Appliance = {
  ...WALLBOX,
  id: '33333333-3333-4333-8333-333333333333',
  name: 'heater',
  scope: null,
};

/** Every file of a folder with the hash of its bytes. */
export function bytesOf(path: string): Record<string, string> {
  const hash = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(path, name)))
      .digest('hex');
  return Object.fromEntries(readdirSync(path).map((name) => [name, hash(name)]));
}

/** All bytes of a folder's files, as text. */
export function textOf(path: string): string {
  return readdirSync(path)
    .map((name) => readFileSync(join(path, name), 'latin1'))
    .join('\n');
}

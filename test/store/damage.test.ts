import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { Failure } from '../../src/core/failure.ts';
import { Secret } from '../../src/core/secret.ts';
import { KEY_BYTES } from '../../src/store/sealing.ts';
import type { SqliteStore } from '../../src/store/sqlite-store.ts';
import { grantOf, LINK, pairingOf } from '../core/samples.ts';
import { stateFolder } from '../support/state-folder.ts';
import { bytesOf, HEATER, open, WALLBOX } from './opened.ts';

const wallboxGrant = grantOf({ appliance: WALLBOX.id });
const heaterGrant = grantOf({ appliance: HEATER.id, accessToken: new Secret('another-token') });

/** A folder with a store of two appliances in it. */
async function filled() {
  const folder = stateFolder();
  using store = open(folder.path);
  for (const appliance of [WALLBOX, HEATER]) await store.addAppliance(appliance);
  for (const grant of [wallboxGrant, heaterGrant]) await store.replaceGrant(grant);
  await store.savePairing(pairingOf({ kind: 'waiting', link: LINK }));
  await store.saveSetting('hub_id', 'the hub');
  await store.saveSetting('setup_code', 'the code');
  return folder;
}

/** What a start reads. */
async function readAll(path: string, key?: Uint8Array): Promise<void> {
  using store: SqliteStore = open(path, key);
  await store.setting('hub_id');
  await store.appliances();
  await store.grants();
  await store.pairings();
}

function sql(path: string, statement: string): void {
  const database = new Database(join(path, 'latchkey.db'));
  database.exec(statement);
  database.close();
}

describe('what was sealed for one row is not opened as another', () => {
  test.each([
    [
      'the tokens of another appliance',
      'UPDATE grants SET tokens = (SELECT tokens FROM grants g WHERE g.appliance <> grants.appliance)',
    ],
    ['older tokens of the same appliance', 'UPDATE grants SET generation = generation + 1'],
    ['the link of another pairing', `UPDATE pairings SET id = 'another'`],
    ['another setting', `UPDATE settings SET sealed = (SELECT sealed FROM settings WHERE name = 'setup_code')`],
    ['a setting for tokens', 'UPDATE grants SET tokens = (SELECT sealed FROM settings LIMIT 1)'],
  ])('%s', async (_, statement) => {
    using folder = await filled();
    sql(folder.path, statement);
    await expect(readAll(folder.path)).rejects.toMatchObject({
      code: 'store_unreadable',
      message: expect.stringContaining('sealed for another row'),
    });
  });
});

test('sealed bytes that were changed are not opened', async () => {
  using folder = await filled();
  sql(folder.path, `UPDATE grants SET tokens = substr(tokens, 1, length(tokens) - 9) || 'AAAAAAAAA'`);
  await expect(readAll(folder.path)).rejects.toMatchObject({ code: 'store_key_wrong' });
});

test.each([
  ['grants', `UPDATE grants SET attributes = '{"scope":7}'`],
  ['grants', `UPDATE grants SET doubt = 'not json'`],
  ['pairings', `UPDATE pairings SET step = '{"kind":"dancing"}'`],
  ['pairings', `UPDATE pairings SET attributes = '{}'`],
])('a row of %s that makes no sense is named, and its content is not repeated', async (table, statement) => {
  using folder = await filled();
  sql(folder.path, statement);
  const error: unknown = await readAll(folder.path).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'store_unreadable', message: expect.stringContaining(`${table}/`) });
});

test('with another key nothing is opened, nothing is changed, and the message says so', async () => {
  using folder = await filled();
  const before = bytesOf(folder.path);
  await expect(readAll(folder.path, new Uint8Array(KEY_BYTES).fill(8))).rejects.toMatchObject({
    code: 'store_key_wrong',
    message: expect.stringContaining('was sealed with another store.key'),
  });
  expect(bytesOf(folder.path)).toEqual(before);
  await readAll(folder.path);
});

describe('a database that is no good is refused with a clear message and left as it is', () => {
  test.each<[string, (file: string) => void]>([
    ['no bytes at all', (file) => truncateSync(file, 0)],
    ['half of its bytes', (file) => truncateSync(file, 4096 * Math.floor(readFileSync(file).length / 8192))],
    ['its first page only', (file) => truncateSync(file, 4096)],
    ['half a page', (file) => truncateSync(file, 2048)],
    [
      'other bytes',
      (file) => writeFileSync(file, 'this is not a database, but long enough to look like one '.repeat(200)),
    ],
    ['zeros', (file) => writeFileSync(file, Buffer.alloc(65_536))],
    ['zeros in its middle', (file) => writeFileSync(file, readFileSync(file).fill(0, 8192, 20_480))],
    ['noise behind its header', (file) => writeFileSync(file, readFileSync(file).fill(0xa5, 100, 4096))],
  ])('%s', async (_, damage) => {
    using folder = await filled();
    damage(join(folder.path, 'latchkey.db'));
    const before = bytesOf(folder.path);
    const error: unknown = await readAll(folder.path).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Failure);
    expect(error).toMatchObject({
      code: 'store_unreadable',
      message: expect.stringMatching(/latchkey\.db.*put back a copy of the state directory/),
    });
    expect(bytesOf(folder.path)).toEqual(before);
  });

  test('the schema of a newer Latchkey', async () => {
    using folder = await filled();
    sql(folder.path, 'PRAGMA user_version = 999');
    const before = bytesOf(folder.path);
    await expect(readAll(folder.path)).rejects.toMatchObject({
      code: 'store_unreadable',
      message: expect.stringMatching(/schema 999.*newer Latchkey/),
    });
    expect(bytesOf(folder.path)).toEqual(before);
  });
});

test('a second one that opens the store is refused, and the first is not disturbed', async () => {
  using folder = await filled();
  using first = open(folder.path);
  expect(() => open(folder.path)).toThrow(
    expect.objectContaining({ code: 'store_unwritable', message: expect.stringContaining('another Latchkey') }),
  );
  await first.saveSetting('hub_id', 'still the hub');
  expect(await first.setting('hub_id')).toBe('still the hub');
});

test('after the first one was closed or killed the next one may open it, with all that was committed', async () => {
  using folder = stateFolder();
  const script = `
    import { open, WALLBOX } from ${JSON.stringify(join(import.meta.dirname, 'opened.ts'))};
    const store = open(${JSON.stringify(folder.path)});
    await store.addAppliance(WALLBOX);
    await store.saveSetting('hub_id', 'committed');
    process.kill(process.pid, 'SIGKILL');`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', script];
  expect(() => execFileSync(process.execPath, args, { stdio: 'pipe' })).toThrow(
    expect.objectContaining({ signal: 'SIGKILL' }),
  );
  using store = open(folder.path);
  expect(await store.setting('hub_id')).toBe('committed');
  expect(await store.appliances()).toEqual([WALLBOX]);
});

test('on a full disk a write fails with a clear message, what was there is still read, and with room it goes on', async (ctx) => {
  if (process.getuid?.() !== 0) ctx.skip('mounting a small disk needs root');
  using folder = stateFolder();
  const disk = join(folder.path, 'disk');
  mkdirSync(disk, { mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k,mode=700', 'tmpfs', disk], { stdio: 'pipe' });
  } catch {
    ctx.skip('no tmpfs can be mounted here');
  }
  try {
    using store = open(disk);
    await store.addAppliance(WALLBOX);
    await store.replaceGrant(wallboxGrant);
    const filler = join(disk, 'filler');
    expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
    const large = (generation: number) =>
      grantOf({ appliance: WALLBOX.id, generation, accessToken: new Secret('x'.repeat(50_000)) });
    await expect(store.replaceGrant(large(2))).rejects.toMatchObject({
      code: 'store_unwritable',
      message: expect.stringContaining('the disk is full: make room'),
    });
    expect(await store.grants()).toEqual([{ grant: wallboxGrant, attempt: null }]);
    truncateSync(filler, 0);
    expect(await store.replaceGrant(large(2))).toBe(true);
    expect(await store.generation(WALLBOX.id)).toBe(2);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

test('a first start on a full disk does not stand in the way of the next one', async (ctx) => {
  if (process.getuid?.() !== 0) ctx.skip('mounting a small disk needs root');
  using folder = stateFolder();
  const disk = join(folder.path, 'disk');
  mkdirSync(disk, { mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=700', 'tmpfs', disk], { stdio: 'pipe' });
  } catch {
    ctx.skip('no tmpfs can be mounted here');
  }
  try {
    for (const room of [0, 4096, 8192, 16_384]) {
      writeFileSync(join(disk, 'filler'), Buffer.alloc(262_144 - room));
      expect(() => open(disk), `with ${room} bytes`).toThrow(expect.objectContaining({ code: 'store_unwritable' }));
      truncateSync(join(disk, 'filler'), 0);
      open(disk)[Symbol.dispose]();
      for (const name of readdirSync(disk)) rmSync(join(disk, name));
    }
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

test('a database that is gone while its journal is there is not started anew over it', async () => {
  using folder = stateFolder();
  using store = open(folder.path);
  await store.addAppliance(WALLBOX);
  using copy = stateFolder();
  writeFileSync(join(copy.path, 'latchkey.db-wal'), readFileSync(join(folder.path, 'latchkey.db-wal')));
  expect(() => open(copy.path)).toThrow(/latchkey\.db is missing, but its journal .*-wal is there/);
  expect(readFileSync(join(copy.path, 'latchkey.db-wal'))).toEqual(readFileSync(join(folder.path, 'latchkey.db-wal')));
});

import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { writeDailyCopy } from '../../src/store/daily-copy.ts';
import { grantOf } from '../core/samples.ts';
import { stateInMemory } from '../support/state-folder.ts';
import { openAsHub, WALLBOX } from './opened.ts';
import { writeSchema1 } from './schema-1.ts';

const grant = grantOf({ appliance: WALLBOX.id, generation: 7 });
const OLD = {
  appliances: [{ id: WALLBOX.id, name: 'wallbox', hash: 'hash' }],
  grants: [grant],
  forgotten: [],
  pairings: [],
};

function pageSize(path: string, file = 'latchkey.db'): number {
  const database = new Database(join(path, file));
  try {
    return Number(database.pragma('page_size', { simple: true }));
  } finally {
    database.close();
  }
}

async function grantsOf(path: string) {
  using store = await openAsHub(path);
  expect(store.recovered).toBeNull();
  expect(store.unwritable).toBeNull();
  return (await store.grants()).map((stored) => stored.grant);
}

test('a new store has small pages, and so have its copy and one that was put together again', async () => {
  using folder = stateInMemory();
  {
    using store = await openAsHub(folder.path);
    await store.addAppliance(WALLBOX);
    await store.replaceGrant(grantOf());
    await writeDailyCopy(store);
  }
  expect([pageSize(folder.path), pageSize(folder.path, 'latchkey.db.copy')]).toEqual([1024, 1024]);
  writeFileSync(join(folder.path, 'latchkey.db'), 'this is no database');
  {
    using store = await openAsHub(folder.path);
    expect(store.recovered).toContain('was damaged');
  }
  expect(pageSize(folder.path)).toBe(1024);
});

test('a store of before is written anew in small pages, and nothing is left of the other', async () => {
  using folder = stateInMemory();
  await writeSchema1(folder.path, OLD);
  expect(pageSize(folder.path)).toBe(4096);
  expect(await grantsOf(folder.path)).toEqual([grant]);
  expect(pageSize(folder.path)).toBe(1024);
  expect(readdirSync(folder.path)).toEqual(['latchkey.db']);
  expect(statSync(join(folder.path, 'latchkey.db')).mode & 0o777).toBe(0o600);
});

test('what was only in its journal is in there too', async () => {
  using before = stateInMemory();
  using folder = stateInMemory();
  await writeSchema1(before.path, OLD);
  const database = new Database(join(before.path, 'latchkey.db'));
  database.exec("UPDATE appliances SET scope = 'Everything'");
  // As a power cut leaves it.
  for (const name of ['latchkey.db', 'latchkey.db-wal']) copyFileSync(join(before.path, name), join(folder.path, name));
  database.close();
  using store = await openAsHub(folder.path);
  expect(await store.appliances()).toMatchObject([{ scope: 'Everything' }]);
});

test('a successor that was cut short is made anew', async () => {
  using folder = stateInMemory();
  await writeSchema1(folder.path, OLD);
  writeFileSync(join(folder.path, 'latchkey.db.new'), 'half of a database');
  expect(await grantsOf(folder.path)).toEqual([grant]);
  expect(pageSize(folder.path)).toBe(1024);
});

test('where there is no room it stays as it is, and is written anew at a later start', async (ctx) => {
  if (process.getuid?.() !== 0) ctx.skip('mounting a small disk needs root');
  using folder = stateInMemory();
  const disk = join(folder.path, 'disk');
  mkdirSync(disk, { mode: 0o700 });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k,mode=700', 'tmpfs', disk], { stdio: 'pipe' });
  } catch {
    ctx.skip('no tmpfs can be mounted here');
  }
  try {
    await writeSchema1(disk, OLD);
    // Of the newest schema, and in pages as before.
    {
      using store = await openAsHub(disk);
      await store.setting('hub_id');
    }
    const database = new Database(join(disk, 'latchkey.db'));
    database.pragma('journal_mode = DELETE');
    database.pragma('page_size = 4096');
    database.exec('VACUUM');
    database.close();
    const filler = join(disk, 'filler');
    expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
    truncateSync(filler, statSync(filler).size - 8192);
    expect(await grantsOf(disk)).toEqual([grant]);
    expect(pageSize(disk)).toBe(4096);
    expect(existsSync(join(disk, 'latchkey.db.new'))).toBe(false);
    truncateSync(filler, 0);
    expect(await grantsOf(disk)).toEqual([grant]);
    expect(pageSize(disk)).toBe(1024);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { Grant } from '../../src/core/grants/grant.ts';
import { Secret } from '../../src/core/secret.ts';
import type { RefreshAttempt, Store } from '../../src/core/store.ts';
import { jweSealing } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { FakeTime } from '../support/fake-time.ts';
import { stateFolder } from '../support/state-folder.ts';
import { runSql } from './corrupt-store.ts';
import { mountSmallDisk } from './small-disk.ts';
import { addAppliance, KEY, open, WALLBOX } from './test-store.ts';

/**
 * The number of transactions and pages in the WAL of a store: https://sqlite.org/fileformat.html, "The Write-Ahead Log".
 * Correct only until a checkpoint moves the WAL into the database.
 */
function readWal(path: string): { readonly commits: number; readonly pages: number } {
  const wal = readFileSync(join(path, 'latchkey.db-wal'));
  if (wal.length === 0) return { commits: 0, pages: 0 };
  const frame = 24 + wal.readUInt32BE(8);
  const salts = wal.subarray(16, 24);
  let [commits, pages] = [0, 0];
  for (
    let offset = 32;
    offset + frame <= wal.length && salts.equals(wal.subarray(offset + 8, offset + 16));
    offset += frame
  ) {
    pages += 1;
    if (wal.readUInt32BE(offset + 4) > 0) commits += 1;
  }
  return { commits, pages };
}

const attempt = { token: 'hash', at: instantAt(1) };
const NAMES = ['wallbox', 'heater', 'boiler', 'battery'];
const APPLIANCES: Appliance[] = NAMES.map((name, index) => {
  const id = WALLBOX.id.replaceAll('1', String(index + 1));
  return { ...WALLBOX, id, connection: id, clientId: name, name };
});
const FIRST = APPLIANCES.map(({ id }) => sampleGrant({ connection: id }));
const [wallbox = sampleGrant(), heater = sampleGrant()] = FIRST;

function next(grant: Grant): Grant {
  return { ...grant, generation: grant.generation + 1, refreshToken: new Secret(`the-next-of-${grant.connection}`) };
}

/** Whether an attempt is begun. */
async function begin(store: Store, grant: Grant, begun: RefreshAttempt = attempt): Promise<boolean> {
  return (await store.grants.beginAttempt(grant, begun)).kind === 'begun';
}

/** A store with paired appliances, in virtual time. */
async function startPaired() {
  const folder = stateFolder();
  const time = new FakeTime();
  {
    using store = open(folder.path);
    for (const appliance of APPLIANCES) await addAppliance(store, appliance);
    for (const grant of FIRST) await store.grants.replace(grant);
    // Reserves the ballast, which takes real time.
    await store.grants.beginAttempt(wallbox, attempt);
    await store.grants.endAttempt(wallbox);
  }
  const store = await openStore(folder.path, jweSealing(KEY), () => time.wall, time);
  const before = readWal.bind(null, folder.path);
  return {
    store,
    time,
    path: folder.path,
    commits: () => before().commits,
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** The results of writes, each `open` until its write has ended. */
function trackResults(writes: readonly Promise<boolean>[]) {
  const known: unknown[] = writes.map(() => 'open');
  for (const [index, write] of writes.entries()) {
    write.then(
      (result) => {
        known[index] = result;
      },
      (error) => {
        known[index] = error.code;
      },
    );
  }
  return known;
}

/** Waits until the writes that were begun have sealed their tokens and wait for `timers` timers. */
async function untilSealed(time: FakeTime, timers: number): Promise<void> {
  await expect.poll(() => time.armed).toBe(timers);
  await time.settle();
}

describe('group commit of refreshes', () => {
  test('refreshes that are due together are written ahead in one commit, and their results in another', async () => {
    using fixture = await startPaired();
    const { store, time, commits } = fixture;
    const before = commits();
    const begun = FIRST.map((grant) => begin(store, grant));
    await untilSealed(time, 1);
    expect(commits()).toBe(before);
    await time.pass(0);
    expect(await Promise.all(begun)).toEqual([true, true, true, true]);
    expect(commits()).toBe(before + 1);
    const results = FIRST.map((grant) => store.grants.replace(next(grant)));
    await time.settle();
    await expect.poll(async () => time.pass(0).then(commits)).toBe(before + 2);
    expect(await Promise.all(results)).toEqual([true, true, true, true]);
    expect((await store.grants.all()).map(({ grant, attempt: left }) => [grant.generation, left])).toEqual(
      Array(4).fill([2, null]),
    );
  });

  test('attempts resolve only once all of their group are on disk', async () => {
    using fixture = await startPaired();
    const { store, time, path } = fixture;
    const seen: unknown[] = [];
    const look = () => {
      using copy = stateFolder();
      for (const name of ['latchkey.db', 'latchkey.db-wal']) copyFileSync(join(path, name), join(copy.path, name));
      const database = new Database(join(copy.path, 'latchkey.db'));
      seen.push(database.prepare("SELECT count(*) FROM grants WHERE attempt LIKE '%hash%'").pluck().get());
      database.close();
    };
    const begun = FIRST.map((grant) => store.grants.beginAttempt(grant, attempt).then(look));
    await time.pass(0);
    await Promise.all(begun);
    expect(seen).toEqual([4, 4, 4, 4]);
  });

  test('results of refreshes wait at most 10 ms for missing ones, and then share one commit', async () => {
    using fixture = await startPaired();
    const { store, time, commits } = fixture;
    const begun = FIRST.map((grant) => begin(store, grant));
    await time.pass(0);
    await Promise.all(begun);
    const before = commits();
    const known = trackResults([store.grants.replace(next(wallbox)), store.grants.replace(next(heater))]);
    await untilSealed(time, 1);
    await time.pass(9);
    expect(known).toEqual(['open', 'open']);
    await time.pass(1);
    await expect.poll(() => known).toEqual([true, true]);
    expect(commits()).toBe(before + 1);
  });
});

describe('independence of writes in one group', () => {
  test('a write in a group that finds another generation changes nothing, and the others succeed', async () => {
    using fixture = await startPaired();
    const { store, time, commits } = fixture;
    const before = commits();
    const known = trackResults([begin(store, { ...wallbox, generation: 7 }), begin(store, heater)]);
    await time.pass(0);
    await expect.poll(() => known).toEqual([false, true]);
    expect(commits()).toBe(before + 1);
  });

  test('a write that fails does not affect the others of its group', async () => {
    using fixture = await startPaired();
    const { store, time, path } = fixture;
    store[Symbol.dispose]();
    runSql(
      path,
      `CREATE TRIGGER refuses BEFORE UPDATE ON grants WHEN NEW.connection = '${heater.connection}'
      BEGIN SELECT RAISE(ABORT, 'no'); END`,
    );
    using again = await openStore(path, jweSealing(KEY), () => time.wall, time);
    const known = trackResults(FIRST.map((grant) => begin(again, grant)));
    await time.pass(0);
    await expect.poll(() => known).toEqual([true, 'store_unwritable', true, true]);
    const marked = (await again.grants.all()).filter((stored) => stored.attempt !== null);
    expect(marked.map(({ grant }) => grant.connection)).not.toContain(heater.connection);
    expect(marked).toHaveLength(3);
  });

  test('no write of a group is reported as saved on a full disk, and none has changed anything', async (ctx) => {
    using fixture = await startPaired();
    const { store, time, path } = fixture;
    store[Symbol.dispose]();
    using folder = mountSmallDisk(ctx, '512k');
    copyFileSync(join(path, 'latchkey.db'), join(folder.path, 'latchkey.db'));
    using full = await openStore(folder.path, jweSealing(KEY), () => time.wall, time);
    expect(() => writeFileSync(join(folder.path, 'filler'), Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
    const known = trackResults(FIRST.map((grant) => full.grants.endAttempt({ ...grant, refused: instantAt(7) })));
    await time.pass(0);
    await expect.poll(() => known).toEqual(Array(4).fill('store_unwritable'));
    expect((await full.grants.all()).map(({ grant }) => grant.refused)).toEqual(Array(4).fill(null));
  });

  test('no write of a group is reported as saved if the store was closed before its commit', async () => {
    using fixture = await startPaired();
    const { store, time } = fixture;
    const known = trackResults(FIRST.map((grant) => begin(store, grant)));
    store[Symbol.dispose]();
    await time.pass(0);
    await expect.poll(() => known).toEqual(Array(4).fill('store_unwritable'));
  });
});

describe('disk pages of a refresh', () => {
  test.each([20, 700, 3000])(
    'a refresh with tokens of %i characters writes only the pages that change',
    async (length) => {
      using fixture = await startPaired();
      const { store, time, path } = fixture;
      const tokens = (mark: string) => ({
        accessToken: new Secret(mark.repeat(length)),
        refreshToken: new Secret(mark.repeat(length)),
      });
      const write = async (work: Promise<boolean>) => {
        const before = readWal(path);
        const done = trackResults([work]);
        await expect.poll(async () => time.pass(0).then(() => done)).toEqual([true]);
        const after = readWal(path);
        return { commits: after.commits - before.commits, pages: after.pages - before.pages };
      };
      await write(store.grants.replace({ ...next(wallbox), ...tokens('a') }));
      // Sealing makes a row a third longer; overflow pages hold 1,020 bytes each.
      const pages = 1 + Math.ceil((1.34 * (2 * length + 400) + 300) / 1020);
      for (const mark of 'bcd') {
        const [{ grant } = { grant: wallbox }] = (await store.grants.all()).filter((one) => one.grant.generation > 1);
        expect(await write(begin(store, grant, { ...attempt, at: instantAt(1 + mark.charCodeAt(0) ** 2) }))).toEqual({
          commits: 1,
          pages: 1,
        });
        const result = await write(
          store.grants.replace({ ...grant, generation: grant.generation + 1, ...tokens(mark) }),
        );
        expect(result.commits).toBe(1);
        expect(result.pages).toBeLessThanOrEqual(pages);
      }
    },
  );
});

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Failure, messageOf, messageWithoutAdvice } from '../../src/core/failure.ts';
import { Secret } from '../../src/core/secret.ts';
import { STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { toStoreFailure } from '../../src/store/sqlite/database.ts';
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts';
import { writeSnapshot } from '../../src/store/sqlite/snapshot.ts';
import { SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { stateFolder } from '../support/state-folder.ts';
import { generationOf } from '../support/stored-grants.ts';
import { runSql } from './corrupt-store.ts';
import { mountSmallDisk } from './small-disk.ts';
import { addAppliance, HEATER, hashFiles, open, openAsHub, removeAppliance, WALLBOX } from './test-store.ts';

const wallboxGrant = sampleGrant({ connection: WALLBOX.id });
const heaterGrant = sampleGrant({ connection: HEATER.id, accessToken: new Secret('another-token') });

/** A folder with a store of two appliances. */
async function createStore() {
  const folder = stateFolder();
  using store = open(folder.path);
  for (const appliance of [WALLBOX, HEATER]) await addAppliance(store, appliance);
  for (const grant of [wallboxGrant, heaterGrant]) await store.grants.replace(grant);
  await store.pairings.save(samplePairing({ kind: 'waiting', link: SAMPLE_LINK }));
  await store.settings.save({ hub_id: 'the hub' });
  await store.settings.save({ setup_code: 'the code' });
  return folder;
}

/** What a hub reads at its start. */
async function readAll(path: string, key?: Uint8Array) {
  using store = await openAsHub(path, key);
  return {
    hub: await store.settings.get('hub_id'),
    appliances: await store.registry.appliances(),
    grants: (await store.grants.all()).map(({ grant }) => grant),
    pairings: await store.pairings.all(),
    damaged: [...store.grants.damaged],
    recovered: store.recoverySummary,
  };
}

describe('damage to one row', () => {
  test.each([
    [
      'the tokens of another appliance',
      `UPDATE grants SET sealed = (SELECT sealed FROM grants g WHERE g.connection <> grants.connection)
       WHERE connection = '${HEATER.id}'`,
    ],
    ['an invalid doubt', `UPDATE grants SET doubt = 'not json' WHERE connection = '${HEATER.id}'`],
  ])('a grant with %s is lost alone, and its appliance can get a new one', async (_, statement) => {
    using folder = await createStore();
    runSql(folder.path, statement);
    expect(await readAll(folder.path)).toMatchObject({
      appliances: [HEATER, WALLBOX],
      grants: [wallboxGrant],
      pairings: [{ connection: WALLBOX.id }],
      damaged: [HEATER.id],
      recovered: null,
    });
    using store = await openAsHub(folder.path);
    expect(await store.grants.get(HEATER.id)).toBeNull();
    const generation = await generationOf(store, HEATER.id);
    expect(generation).toBeGreaterThan(0);
    expect(await store.grants.replace({ ...heaterGrant, generation: generation + 1 })).toBe(true);
    expect((await store.grants.all()).map(({ grant }) => grant.connection).sort()).toEqual([WALLBOX.id, HEATER.id]);
    expect(store.grants.damaged.size).toBe(0);
  });

  test('a pairing with changed bytes is lost alone', async () => {
    using folder = await createStore();
    runSql(folder.path, `UPDATE pairings SET sealed = substr(sealed, 1, 99) || 'AAAA'`);
    expect(await readAll(folder.path)).toMatchObject({ hub: 'the hub', grants: [{}, {}], pairings: [], damaged: [] });
  });

  test('a damaged setting is lost alone, and can be written again', async () => {
    using folder = await createStore();
    runSql(folder.path, `UPDATE settings SET sealed = (SELECT sealed FROM settings WHERE name = 'setup_code')`);
    expect(await readAll(folder.path)).toMatchObject({ hub: null, grants: [{}, {}] });
    using store = await openAsHub(folder.path);
    await store.settings.save({ hub_id: 'a new one' });
    expect(await store.settings.get('hub_id')).toBe('a new one');
  });
});

test('a store opened with another key is refused with a clear message, and nothing is changed', async () => {
  using folder = await createStore();
  const before = hashFiles(folder.path);
  await expect(readAll(folder.path, new Uint8Array(STORE_KEY_BYTES).fill(8))).rejects.toMatchObject({
    code: 'store_key_wrong',
    message: expect.stringContaining('was sealed with another store.key: restore the right key'),
  });
  expect(hashFiles(folder.path)).toEqual(before);
  expect(await readAll(folder.path)).toMatchObject({ grants: [{}, {}] });
});

const DAMAGES: [string, (file: string) => void][] = [
  ['no bytes at all', (file) => truncateSync(file, 0)],
  ['its first page only', (file) => truncateSync(file, 4096)],
  [
    'other bytes',
    (file) => writeFileSync(file, 'this is not a database, but long enough to look like one '.repeat(200)),
  ],
  ['noise behind its header', (file) => writeFileSync(file, readFileSync(file).fill(0xa5, 100, 4096))],
];

describe('damaged database without a snapshot', () => {
  test.each(DAMAGES)(
    'a database with %s is refused with a clear message and left as it is if there is no snapshot',
    async (_, damage) => {
      using folder = await createStore();
      damage(join(folder.path, 'latchkey.db'));
      const before = hashFiles(folder.path);
      const error: unknown = await readAll(folder.path).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(Failure);
      expect(error).toMatchObject({
        code: 'store_unreadable',
        message: expect.stringMatching(/latchkey\.db can't be repaired .*restore a copy of the state directory/),
      });
      expect(hashFiles(folder.path)).toEqual(before);
    },
  );
});

test.each([SCHEMA_VERSION + 1, 999_999, -1])(
  'a store of schema %i is refused and left as it is, also if it has a snapshot',
  async (version) => {
    using folder = await createStoreWithSnapshot();
    runSql(folder.path, `PRAGMA user_version = ${version}`);
    const before = hashFiles(folder.path);
    const says = `latchkey.db has schema ${version}, and this Latchkey knows only schema ${SCHEMA_VERSION}: install the`;
    await expect(readAll(folder.path)).rejects.toMatchObject({
      code: 'store_schema_unknown',
      message: expect.stringContaining(says),
    });
    expect(hashFiles(folder.path)).toEqual(before);
    runSql(folder.path, `PRAGMA user_version = ${SCHEMA_VERSION}`);
    expect(await readAll(folder.path)).toMatchObject({ grants: [wallboxGrant, { generation: 2 }], recovered: null });
  },
);

/** A folder with a store, its snapshot, and a grant that was refreshed after the snapshot. */
async function createStoreWithSnapshot() {
  const folder = await createStore();
  using store = await openAsHub(folder.path);
  await writeSnapshot(store);
  await store.grants.replace({ ...heaterGrant, generation: 2 });
  return folder;
}

/** The damaged databases that were moved aside. */
function damagedFiles(path: string): string[] {
  return readdirSync(path).filter((name) => name.startsWith('latchkey.db.damaged-2031-05-05T06-00-00'));
}

const MISSING = 'was missing, as after a restore of a backup that leaves it out; it was made again from';
const DAMAGED = String.raw`was damaged \(.*; it was replaced by what could be read of it and of`;

describe('damaged database with a snapshot', () => {
  test.each([...DAMAGES, ['no file', (file: string) => rmSync(file)] as const])(
    'a database with %s is moved aside, and the snapshot replaces it',
    async (_, damage) => {
      using folder = await createStoreWithSnapshot();
      const file = join(folder.path, 'latchkey.db');
      damage(file);
      const before = existsSync(file) ? readFileSync(file) : null;
      const found = await readAll(folder.path);
      const made = { boot: '', uptime: 0, wall: expect.any(Number) };
      const doubt = { kind: 'copy', lostAt: made, sends: 0 };
      expect(found).toMatchObject({
        hub: 'the hub',
        appliances: [HEATER, WALLBOX],
        grants: [
          { ...wallboxGrant, doubt },
          { ...heaterGrant, doubt },
        ],
        recovered: expect.stringMatching(
          new RegExp(`${before === null ? MISSING : DAMAGED} the snapshot of .*(heater, wallbox|wallbox, heater)`, 's'),
        ),
      });
      if (before !== null)
        expect(damagedFiles(folder.path).map((name) => readFileSync(join(folder.path, name)))).toEqual([before]);
      // The next start finds nothing wrong.
      expect(await readAll(folder.path)).toEqual({ ...found, recovered: null });
    },
  );

  test("a damaged grant is restored from the snapshot, in doubt if the snapshot's is older", async () => {
    using folder = await createStoreWithSnapshot();
    runSql(folder.path, `UPDATE grants SET sealed = substr(sealed, 1, 99) || 'AAAA'`);
    expect(await readAll(folder.path)).toMatchObject({
      grants: [
        { ...wallboxGrant, doubt: null },
        { ...heaterGrant, generation: 1, doubt: { kind: 'copy' } },
      ],
      pairings: [{ connection: WALLBOX.id }],
      damaged: [],
      recovered: expect.stringContaining('the grants of heater come from the snapshot'),
    });
    expect(damagedFiles(folder.path)).toHaveLength(1);
  });

  test('an appliance that was removed after the snapshot stays removed if only rows are damaged', async () => {
    using folder = await createStoreWithSnapshot();
    {
      using store = await openAsHub(folder.path);
      await removeAppliance(store, WALLBOX.id);
    }
    runSql(folder.path, `UPDATE grants SET sealed = substr(sealed, 1, 99) || 'AAAA'`);
    expect(await readAll(folder.path)).toMatchObject({ appliances: [HEATER], grants: [{ connection: HEATER.id }] });
  });

  test('a database older than its snapshot is restored from it', async () => {
    using folder = await createStore();
    const file = join(folder.path, 'latchkey.db');
    const older = readFileSync(file);
    {
      using store = await openAsHub(folder.path);
      await store.grants.replace({ ...heaterGrant, generation: 2 });
      await writeSnapshot(store);
    }
    writeFileSync(file, older);
    expect(await readAll(folder.path)).toMatchObject({
      hub: 'the hub',
      appliances: [HEATER, WALLBOX],
      grants: [
        { connection: WALLBOX.id, generation: 1 },
        { connection: HEATER.id, generation: 2, doubt: { kind: 'copy' } },
      ],
      recovered: expect.stringContaining('it is older than its snapshot'),
    });
    expect(damagedFiles(folder.path)).toHaveLength(1);
  });

  test.each([
    ['before the damaged one was moved aside', (path: string) => writeFileSync(`${path}.new`, 'half of it')],
    ['after the damaged one was moved aside', (path: string) => renameSync(path, `${path}.new`)],
  ])('a replacement of the database that was interrupted %s is completed at the next start', async (_, interrupt) => {
    using folder = await createStoreWithSnapshot();
    interrupt(join(folder.path, 'latchkey.db'));
    expect(await readAll(folder.path)).toMatchObject({ grants: [{ doubt: null }, { generation: 2, doubt: null }] });
    expect(readdirSync(folder.path)).not.toContain('latchkey.db.new');
  });

  test('no snapshot is made of a store with a damaged row', async () => {
    using folder = await createStoreWithSnapshot();
    const before = hashFiles(folder.path)['latchkey.db.copy'];
    runSql(folder.path, `UPDATE grants SET sealed = 'not sealed'`);
    using store = open(folder.path);
    await expect(writeSnapshot(store)).rejects.toMatchObject({ code: 'store_unreadable' });
    expect(hashFiles(folder.path)['latchkey.db.copy']).toBe(before);
    expect(readdirSync(folder.path)).not.toContain('latchkey.db.copy.new');
  });
});

test('opening a store that is already open fails and does not affect the first process', async () => {
  using folder = await createStore();
  using first = open(folder.path);
  expect(() => open(folder.path)).toThrow(
    expect.objectContaining({ code: 'store_locked', message: expect.stringContaining('another Latchkey') }),
  );
  await first.settings.save({ hub_id: 'still the hub' });
  expect(await first.settings.get('hub_id')).toBe('still the hub');
});

test('a store on a read-only disk is served from memory, and becomes writable again with the disk', async (ctx) => {
  using folder = mountSmallDisk(ctx, '1m');
  const disk = folder.path;
  await expect(withReadOnly(disk, () => openAsHub(disk))).rejects.toMatchObject({ code: 'state_dir_unusable' });
  const files = ['latchkey.db', 'latchkey.db-wal'];
  const savedFiles: Buffer[] = [];
  {
    using store = open(disk);
    await addAppliance(store, WALLBOX);
    await store.grants.replace(wallboxGrant);
    // As after a kill, the commits are only in the WAL.
    savedFiles.push(...files.map((name) => readFileSync(join(disk, name))));
  }
  for (const [index, name] of files.entries()) writeFileSync(join(disk, name), savedFiles[index] ?? '');
  const before = hashFiles(disk);
  const store = await withReadOnly(disk, async () => {
    const opened = await openAsHub(disk);
    expect(opened.writeProblem).toMatch(/EROFS/);
    expect(await opened.grants.all()).toEqual([{ grant: wallboxGrant, attempt: null }]);
    await expect(opened.grants.forget(WALLBOX.id, 1)).rejects.toMatchObject({ code: 'store_unwritable' });
    expect(await opened.tryReopen()).toBe(false);
    expect(await opened.grants.all()).toHaveLength(1);
    return opened;
  });
  expect(hashFiles(disk)).toEqual(before);
  // Writes that come meanwhile wait for it.
  const next = sampleGrant({ connection: WALLBOX.id, generation: 2 });
  const reopened = store.tryReopen();
  await store.settings.save({ hub_id: 'the hub' });
  expect([await reopened, await store.grants.replace(next)]).toEqual([true, true]);
  expect(store.writeProblem).toBeNull();
  store[Symbol.dispose]();
  using again = await openAsHub(disk);
  expect(await generationOf(again, WALLBOX.id)).toBe(2);
});

async function withReadOnly<Result>(disk: string, work: () => Promise<Result>): Promise<Result> {
  execFileSync('mount', ['-o', 'remount,ro', disk]);
  try {
    return await work();
  } finally {
    execFileSync('mount', ['-o', 'remount,rw', disk]);
  }
}

test('a write to a full disk fails with a clear message, reads continue, and writes resume once there is room', async (ctx) => {
  using folder = mountSmallDisk(ctx, '512k');
  const disk = folder.path;
  using store = open(disk);
  await addAppliance(store, WALLBOX);
  await store.grants.replace(wallboxGrant);
  const filler = join(disk, 'filler');
  expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
  const large = (generation: number) =>
    sampleGrant({ connection: WALLBOX.id, generation, accessToken: new Secret('x'.repeat(50_000)) });
  await expect(store.grants.replace(large(2))).rejects.toMatchObject({
    code: 'store_unwritable',
    message: expect.stringContaining('the disk is full: make room'),
  });
  expect(await store.grants.all()).toEqual([{ grant: wallboxGrant, attempt: null }]);
  truncateSync(filler, 0);
  expect(await store.grants.replace(large(2))).toBe(true);
  expect(await generationOf(store, WALLBOX.id)).toBe(2);
});

test.each([
  ['SQLITE_FULL', 'database or disk is full', 'the store /db: the disk is full: make room'],
  ['SQLITE_IOERR', 'disk I/O error', "the store /db: it can't be written (SQLITE_IOERR): check the disk"],
  ['SQLITE_BUSY', 'database is locked', 'another Latchkey has the store /db open: stop it first'],
])('the error for %s is stated once, in plain words', (code, message, expected) => {
  const failure = toStoreFailure(Object.assign(new Error(message), { code }), '/db');
  expect(messageOf(failure)).toBe(expected);
  expect(messageWithoutAdvice(failure)).toBe(expected.replace(/: (make room|check the disk)$/, ''));
  expect(failure.cause).toMatchObject({ code });
});

test('a first start on a full disk leaves nothing that prevents the next start', async (ctx) => {
  using folder = mountSmallDisk(ctx, '256k');
  const disk = folder.path;
  for (const room of [0, 4096, 8192, 16_384]) {
    writeFileSync(join(disk, 'filler'), Buffer.alloc(262_144 - room));
    expect(() => open(disk), `with ${room} bytes`).toThrow(expect.objectContaining({ code: 'store_unwritable' }));
    truncateSync(join(disk, 'filler'), 0);
    open(disk)[Symbol.dispose]();
    for (const name of readdirSync(disk)) rmSync(join(disk, name));
  }
});

test('a store whose database is missing while its WAL exists is not created again', async () => {
  using folder = stateFolder();
  using store = open(folder.path);
  await addAppliance(store, WALLBOX);
  using copy = stateFolder();
  writeFileSync(join(copy.path, 'latchkey.db-wal'), readFileSync(join(folder.path, 'latchkey.db-wal')));
  await expect(openAsHub(copy.path)).rejects.toThrow(/the file is missing, but its WAL .*-wal is there/);
  expect(readFileSync(join(copy.path, 'latchkey.db-wal'))).toEqual(readFileSync(join(folder.path, 'latchkey.db-wal')));
});

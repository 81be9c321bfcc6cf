import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { Grant } from '../../src/core/grants/grant.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import { sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { corruptTable, runSql } from './corrupt-store.ts';
import { DECLARED, FORMER_PAIRING, HISTORY_ENTRY, writeFormerStore } from './former-store.ts';
import { mountSmallDisk } from './small-disk.ts';
import { FRIDGE, KEY, open, openAsHub, ownConnection, removeAppliance, sampleSession, WALLBOX } from './test-store.ts';

const OTHER_KEY = new Uint8Array(STORE_KEY_BYTES).fill(8);
const wallboxGrant = sampleGrant({ connection: WALLBOX.id });
const declaredGrant = sampleGrant({ connection: DECLARED.id });
const DAMAGED = { kind: 'none', damaged: true };

const WHOLE = {
  hub: 'the hub',
  connections: [FRIDGE, DECLARED, WALLBOX].map(ownConnection),
  appliances: [FRIDGE, DECLARED, WALLBOX],
  grants: [wallboxGrant, declaredGrant],
  pairings: [FORMER_PAIRING],
  sessions: [WALLBOX, DECLARED].map((appliance) => sampleSession(appliance, appliance.name)),
  invites: ['an-invite'],
  history: [HISTORY_ENTRY],
  damaged: [[], [], []],
  recovered: null,
};

type OpenedStore = Awaited<ReturnType<typeof openAsHub>>;

async function contentOf(store: OpenedStore) {
  return {
    hub: await store.setting('hub_id'),
    connections: await store.connections(),
    appliances: await store.appliances(),
    grants: (await store.grants()).map(({ grant }) => grant),
    pairings: await store.pairings(),
    sessions: await store.sessions(),
    invites: (await store.invites()).map(({ hash }) => hash),
    history: await store.history(WALLBOX.id),
    damaged: [[...store.damagedConnections], [...store.damagedAppliances], [...store.damagedGrants]],
    recovered: store.recoverySummary,
  };
}

async function start(path: string) {
  using store = await openAsHub(path);
  return await contentOf(store);
}

/** A folder with a store of schema 1. */
function formerStore(options: Parameters<typeof writeFormerStore>[1] = {}) {
  const folder = memoryStateFolder();
  writeFormerStore(folder.path, options);
  return folder;
}

/** The same with a snapshot of schema 1, since which the grant of the wallbox was refreshed. */
function formerStoreWithSnapshot() {
  using older = formerStore();
  moveWalToDatabase(older.path);
  const folder = formerStore({ generation: 2 });
  cpSync(join(older.path, 'latchkey.db'), join(folder.path, 'latchkey.db.copy'));
  moveWalToDatabase(folder.path);
  return folder;
}

function moveWalToDatabase(path: string): void {
  runSql(path, 'PRAGMA journal_mode = DELETE');
}

const inDoubt = (grant: Grant) => ({ ...grant, doubt: { kind: 'copy', lostAt: expect.anything(), sends: 0 } });

test('a store of schema 1 is migrated with all its content, and each appliance has a connection of its own', async () => {
  using folder = formerStore();
  expect(readFileSync(join(folder.path, 'latchkey.db-wal')).length).toBeGreaterThan(0);
  expect(await start(folder.path)).toEqual(WHOLE);
  expect(await start(folder.path)).toEqual(WHOLE);
  const database = new Database(join(folder.path, 'latchkey.db'));
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();
  database.close();
  expect(tables).toEqual([
    'appliances',
    'connections',
    'grants',
    'history',
    'invites',
    'pairings',
    'sessions',
    'settings',
    'usage',
  ]);
});

test('the removal of a migrated connection and its appliance removes all that belongs to them, and no more', async () => {
  using folder = formerStore();
  {
    using store = await openAsHub(folder.path);
    expect(await store.saveRegistry({ removedConnections: [WALLBOX.id] })).toBe(false);
    expect(await removeAppliance(store, WALLBOX.id)).toBe(true);
  }
  expect(await start(folder.path)).toEqual({
    ...WHOLE,
    connections: [FRIDGE, DECLARED].map(ownConnection),
    appliances: [FRIDGE, DECLARED],
    grants: [declaredGrant],
    pairings: [],
    sessions: [sampleSession(DECLARED, 'heater')],
    history: [],
  });
});

test('a store of schema 1 is migrated with the second key of an interrupted rotation', async () => {
  using folder = formerStore({ key: OTHER_KEY });
  using store = await openStore(folder.path, jweSealing(KEY), () => 0, undefined, [jweSealing(OTHER_KEY)]);
  expect(await contentOf(store)).toEqual(WHOLE);
  store[Symbol.dispose]();
  using again = await openAsHub(folder.path, OTHER_KEY);
  expect(await contentOf(again)).toEqual(WHOLE);
});

test('a store of schema 1 on a read-only disk is served from memory, and stays as it is', async (ctx) => {
  using disk = mountSmallDisk(ctx, '1m');
  writeFormerStore(disk.path);
  execFileSync('mount', ['-o', 'remount,ro', disk.path]);
  const before = readFileSync(join(disk.path, 'latchkey.db'));
  {
    using store = await openAsHub(disk.path);
    expect(store.writeProblem).toMatch(/EROFS/);
    expect(await contentOf(store)).toEqual(WHOLE);
  }
  expect(readFileSync(join(disk.path, 'latchkey.db'))).toEqual(before);
  execFileSync('mount', ['-o', 'remount,rw', disk.path]);
  expect(await start(disk.path)).toEqual(WHOLE);
});

test.each([1, 2, 4, 6])(
  'a migration that is killed when it seals row %i is repeated at the next start',
  async (rows) => {
    using folder = formerStore();
    const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src/store', path));
    const script = `
    import { openDatabase } from ${source('sqlite/database.ts')};
    import { storeFiles } from ${source('sqlite/store-files.ts')};
    import { jweSealing } from ${source('keys/sealing.ts')};
    const sealing = jweSealing(new Uint8Array(${JSON.stringify([...KEY])}));
    let count = 0;
    const seal = (row, text) => {
      if (++count === ${rows}) process.kill(process.pid, 'SIGKILL');
      return sealing.seal(row, text);
    };
    openDatabase(storeFiles(${JSON.stringify(folder.path)}), [{ open: sealing.open, seal }]);`;
    const args = ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', script];
    expect(() => execFileSync(process.execPath, args, { stdio: 'pipe' })).toThrow(
      expect.objectContaining({ signal: 'SIGKILL' }),
    );
    const database = new Database(join(folder.path, 'latchkey.db'));
    expect(database.pragma('user_version', { simple: true })).toBe(1);
    database.close();
    expect(await start(folder.path)).toEqual(WHOLE);
  },
);

describe('migration of changed rows', () => {
  const SWAP = `UPDATE appliances SET sealed = (SELECT sealed FROM appliances a WHERE a.name = 'heater')
    WHERE name = 'wallbox'`;

  test('an appliance whose row was changed in schema 1 stays without credentials, and its connection is reported', async () => {
    using folder = formerStore();
    runSql(folder.path, SWAP);
    const added = { ...ownConnection(WALLBOX), origin: 'added' };
    const changed = { ...WALLBOX, credentials: DAMAGED };
    expect(await start(folder.path)).toEqual({
      ...WHOLE,
      connections: [...WHOLE.connections.slice(0, 2), added],
      appliances: [FRIDGE, DECLARED, changed],
      damaged: [[WALLBOX.id], [WALLBOX.id], []],
    });
    {
      using store = await openAsHub(folder.path);
      await store.connections();
      expect(await store.saveRegistry({ updatedConnections: [ownConnection(WALLBOX)] })).toBe(true);
      expect(store.damagedConnections.size).toBe(0);
    }
    expect(await start(folder.path)).toEqual({
      ...WHOLE,
      appliances: [FRIDGE, DECLARED, changed],
      damaged: [[], [WALLBOX.id], []],
    });
  });

  test('an appliance whose row was changed in schema 1 is restored from a snapshot of schema 1', async () => {
    using folder = formerStoreWithSnapshot();
    runSql(folder.path, SWAP);
    const found = await start(folder.path);
    expect(found).toEqual({
      ...WHOLE,
      grants: [{ ...wallboxGrant, generation: 2 }, declaredGrant],
      recovered: expect.stringContaining('the appliance wallbox, the connection wallbox'),
    });
    expect(await start(folder.path)).toEqual({ ...found, recovered: null });
  });
});

describe('migration of a damaged store', () => {
  const grants = [{ ...wallboxGrant, generation: 2 }, declaredGrant];

  test.each<[string, Partial<typeof WHOLE> | Record<string, unknown>]>([
    ['history', { history: [] }],
    ['pairings', { pairings: [] }],
    ['sessions', {}],
    ['sessions_of_appliance', {}],
    ['appliances', {}],
    ['sqlite_autoindex_appliances_2', {}],
    ['sqlite_autoindex_appliances_3', {}],
    ['settings', {}],
    ['invites', { invites: [] }],
    ['grants', { grants: [inDoubt(wallboxGrant), inDoubt(declaredGrant)] }],
  ])('damage to %s of schema 1 costs nothing that the snapshot has, and no newer grant', async (table, losses) => {
    using folder = formerStoreWithSnapshot();
    corruptTable(folder.path, table);
    const found = await start(folder.path);
    expect(found).toEqual({
      ...WHOLE,
      grants,
      ...losses,
      recovered: expect.stringMatching(/was damaged \(.*it was replaced by what could be read of it/s),
    });
    expect(await start(folder.path)).toEqual({ ...found, recovered: null });
    expect(readdirSync(folder.path).filter((name) => name.includes('damaged'))).toHaveLength(1);
  });

  test('damage to the appliances of schema 1 loses no grant, even without a snapshot', async () => {
    using folder = formerStore();
    moveWalToDatabase(folder.path);
    corruptTable(folder.path, 'appliances');
    const found = await start(folder.path);
    const recreated = { portal: 'home', scope: null, origin: 'added' };
    expect(found).toMatchObject({
      connections: [
        { ...recreated, id: WALLBOX.id, name: 'home' },
        { ...recreated, id: DECLARED.id, name: 'home-2' },
      ],
      appliances: [],
      grants: [wallboxGrant, declaredGrant],
      pairings: [FORMER_PAIRING],
      history: [HISTORY_ENTRY],
    });
    expect(await start(folder.path)).toEqual({ ...found, recovered: null });
  });

  test('a store of schema 1 whose key is wrong is not migrated', async () => {
    using folder = formerStore();
    await expect(openAsHub(folder.path, OTHER_KEY)).rejects.toMatchObject({ code: 'store_key_wrong' });
    expect(await start(folder.path)).toEqual(WHOLE);
  });
});

test('a migrated store can be opened without the checks of a start, and enforces its references', async () => {
  using folder = formerStore();
  using store = open(folder.path);
  await expect(store.replaceGrant(sampleGrant({ connection: 'nobody' }))).rejects.toMatchObject({
    code: 'store_unwritable',
  });
});

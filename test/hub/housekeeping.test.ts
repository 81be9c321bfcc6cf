import { existsSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { getTasks } from 'node-cron';
import { expect, test } from 'vitest';
import { StoreMaintenance } from '../../src/hub/store-maintenance.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { createLog } from '../../src/system/log.ts';
import { sampleGrant, samplePairing } from '../core/samples.ts';
import { addAppliance, open, WALLBOX } from '../store/test-store.ts';
import { FakeTime } from '../support/fake-time.ts';
import { eventually } from '../support/hub-process.ts';
import { stateFolder } from '../support/state-folder.ts';
import { completePairing } from '../support/stored-grants.ts';

const DAY = 86_400_000;
const log = createLog('silent');

/** A store with an appliance in it, and where its copy is. */
async function home() {
  const folder = stateFolder();
  const store = open(folder.path);
  await addAppliance(store, WALLBOX);
  const copy = join(folder.path, 'latchkey.db.copy');
  const time = new FakeTime();
  return {
    store,
    copy,
    time,
    /** Keeps house until what it has begun has ended. */
    async keepHouse(work: (housekeeping: StoreMaintenance) => Promise<void> | void = () => undefined) {
      await using housekeeping = new StoreMaintenance(store, { clock: time, timers: time, log });
      housekeeping.start();
      await work(housekeeping);
    },
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** Lets the files look as if they were written at this moment. */
function date(file: string, wall: number): void {
  utimesSync(file, wall / 1000, wall / 1000);
}

function pair(store: SqliteStore, generation: number): Promise<boolean> {
  const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });
  return completePairing(store, paired, sampleGrant({ connection: WALLBOX.id, generation }));
}

test('a new hub makes a snapshot at once, which is private and contains the whole store', async () => {
  using store = await home();
  await store.keepHouse();
  expect(statSync(store.copy).mode & 0o777).toBe(0o600);
  expect(readFileSync(store.copy).includes(WALLBOX.id)).toBe(true);
});

test('the nightly snapshot is scheduled soon after the start, once, and not any more after the end', async () => {
  using store = await home();
  const before = getTasks().size;
  await store.keepHouse(async (housekeeping) => {
    housekeeping.onClockSet();
    expect(getTasks().size).toBe(before);
    await store.time.pass(15_000);
    expect(getTasks().size).toBe(before + 1);
    housekeeping.onClockSet();
    expect(getTasks().size).toBe(before + 1);
  });
  expect(getTasks().size).toBe(before);
  await store.keepHouse();
  await store.time.pass(15_000);
  expect(getTasks().size).toBe(before);
});

test.each([
  ['of the last hours', -5 * 3_600_000, false],
  ['of yesterday', -DAY, true],
  ['from the future', 3_600_000, true],
])('at its start the hub replaces a snapshot %s or keeps it', async (_, age, replaced) => {
  using store = await home();
  await store.keepHouse();
  date(store.copy, store.time.wall + age);
  const before = statSync(store.copy).ino;
  await store.keepHouse();
  expect(statSync(store.copy).ino !== before).toBe(replaced);
});

test('a pairing leads to a snapshot at once, and an unchanged store to none', async () => {
  using store = await home();
  await store.keepHouse();
  date(store.copy, store.time.wall);
  const first = statSync(store.copy).ino;
  await store.keepHouse(async (housekeeping) => {
    expect(await pair(store.store, 1)).toBe(true);
    await eventually(async () => statSync(store.copy).ino !== first);
    expect(readFileSync(store.copy).includes(`${WALLBOX.id}ended`)).toBe(true);
    date(store.copy, store.time.wall - DAY);
    housekeeping.requestSnapshot();
    await store.store.settings.get('none');
    housekeeping.requestSnapshot();
  });
  expect(statSync(store.copy).mtimeMs).toBe(store.time.wall - DAY);
});

test('the hub makes a new snapshot after the clock was set ahead by a day', async () => {
  using store = await home();
  await store.keepHouse();
  date(store.copy, store.time.wall);
  const before = statSync(store.copy).ino;
  await store.keepHouse(async (housekeeping) => {
    housekeeping.onClockSet();
    await store.time.pass(15_000);
    expect(statSync(store.copy).ino).toBe(before);
    store.time.wall += DAY;
    housekeeping.onClockSet();
    await store.time.pass(15_000);
  });
  expect(statSync(store.copy).ino).not.toBe(before);
  expect(existsSync(`${store.copy}.new`)).toBe(false);
});

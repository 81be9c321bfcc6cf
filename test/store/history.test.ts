import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { HistoryLine } from '../../src/core/reports/history.ts';
import { Secret } from '../../src/core/secret.ts';
import { at, grantOf, LINK, pairingOf } from '../core/samples.ts';
import { stateInMemory } from '../support/state-folder.ts';
import { HEATER, open, openAsHub, WALLBOX } from './opened.ts';
import { smallDisk } from './small-disk.ts';
import { spoil, sql } from './spoil.ts';

const DAY = 86_400_000;
const START = Date.UTC(2031, 4, 5, 6);
const { id } = WALLBOX;

function line(kind: HistoryLine['kind'], time: number, why: HistoryLine['why'] = null): HistoryLine {
  return { kind, why, first: time, last: time, count: 1 };
}

/** What waits to be written of the wallbox. */
function waiting(...lines: HistoryLine[]) {
  const left = [...lines];
  return { left, waiting: (appliance: string) => (appliance === id ? left : []), written: () => void left.splice(0) };
}

async function withWallbox(path: string) {
  const store = open(path);
  await store.addAppliance(WALLBOX);
  await store.replaceGrant(grantOf());
  return store;
}

const REFRESHED = line('refreshed', START);
const attempt = { token: 'hash', at: at(1) };
const exchanging = pairingOf({ kind: 'exchanging', link: LINK, since: at(4) });

describe('what waits is written along', () => {
  test.each<[string, (store: ReturnType<typeof open>) => Promise<unknown>]>([
    ['with the beginning of a refresh', (store) => store.beginAttempt(grantOf(), attempt)],
    ['with its end', (store) => store.endAttempt(grantOf())],
    ['with its successor', (store) => store.replaceGrant(grantOf({ generation: 2 }))],
    ['with a pairing', (store) => store.savePairing(exchanging)],
    ['with the end of a pairing', (store) => store.concludePairing(exchanging, grantOf({ generation: 2 }))],
    ['by itself', (store) => store.addHistory(new Map([[id, [REFRESHED]]]))],
  ])('%s, and outlives a crash', async (_, write) => {
    using folder = stateInMemory();
    {
      using store = await withWallbox(folder.path);
      const lines = waiting(REFRESHED);
      store.takeHistoryFrom(lines);
      expect(await store.history(id)).toEqual([]);
      await write(store);
    }
    using store = await openAsHub(folder.path);
    expect(await store.history(id)).toEqual([REFRESHED]);
    expect(store.recovered).toBeNull();
  });

  test('once, and alike ones of a day in one line', async () => {
    using folder = stateInMemory();
    using store = await withWallbox(folder.path);
    const lines = waiting(REFRESHED);
    store.takeHistoryFrom(lines);
    await store.beginAttempt(grantOf(), attempt);
    await store.endAttempt(grantOf());
    lines.left.push(line('refresh_failed', START + 1, 'answer_lost'), line('refreshed', START + 2));
    await store.replaceGrant(grantOf({ generation: 2 }));
    expect(await store.history(id)).toEqual([
      { ...REFRESHED, last: START + 2, count: 2 },
      line('refresh_failed', START + 1, 'answer_lost'),
    ]);
  });
});

test('of each appliance two hundred lines are kept, and the oldest go', async () => {
  using folder = stateInMemory();
  using store = await withWallbox(folder.path);
  await store.addAppliance(HEATER);
  await store.addHistory(new Map([[HEATER.id, [line('unpaired', START)]]]));
  const days = Array.from({ length: 230 }, (_, day) => line('refreshed', START + day * DAY));
  for (let from = 0; from < days.length; from += 50) {
    await store.addHistory(new Map([[id, days.slice(from, from + 50)]]));
  }
  expect(await store.history(id)).toEqual(days.slice(-200));
  expect(await store.history(HEATER.id)).toHaveLength(1);
  store[Symbol.dispose]();
  const database = new Database(join(folder.path, 'latchkey.db'), { readonly: true });
  expect(database.prepare('SELECT count(*) FROM history').pluck().get()).toBe(201);
  database.close();
});

test('an appliance that is removed takes its history along, and one that is gone gets none', async () => {
  using folder = stateInMemory();
  using store = await withWallbox(folder.path);
  await store.addHistory(new Map([[id, [REFRESHED]]]));
  await store.removeAppliance(id);
  await store.addHistory(new Map([[id, [REFRESHED]]]));
  await store.addAppliance(WALLBOX);
  expect(await store.history(id)).toEqual([]);
});

test('another name or portal changes nothing of it', async () => {
  using folder = stateInMemory();
  using store = await withWallbox(folder.path);
  await store.addHistory(new Map([[id, [REFRESHED]]]));
  await store.changeAppliance({ ...WALLBOX, name: 'charger', portal: 'another' });
  expect(await store.history(id)).toEqual([REFRESHED]);
});

test('a restored backup has none of it, and takes none away', async () => {
  using folder = stateInMemory();
  using store = await withWallbox(folder.path);
  await store.addHistory(new Map([[id, [REFRESHED]]]));
  const rows = { settings: new Map(), appliances: [], removed: new Set<string>(), grants: [], sessions: [] };
  store.putState(rows);
  expect(await store.history(id)).toEqual([REFRESHED]);
  store.putState({ ...rows, removed: new Set([id]) });
  expect(await store.history(id)).toEqual([]);
});

describe('damage', () => {
  test('of lines costs those lines', async () => {
    using folder = stateInMemory();
    {
      using store = await withWallbox(folder.path);
      const days = [0, 1, 2, 3].map((day) => line('refreshed', START + day * DAY));
      await store.addHistory(new Map([[id, days]]));
    }
    sql(
      folder.path,
      "UPDATE history SET kind = 'nonsense' WHERE number = 2; UPDATE history SET count = -1 WHERE number = 3",
    );
    using store = await openAsHub(folder.path);
    expect(store.recovered).toBeNull();
    expect(await store.history(id)).toEqual([line('refreshed', START), line('refreshed', START + 3 * DAY)]);
    await store.addHistory(new Map([[id, [line('refreshed', START + 3 * DAY)]]]));
    expect(await store.history(id)).toMatchObject([{ count: 1 }, { count: 2 }]);
  });

  test('of the whole table costs the history, and no grant', async () => {
    using folder = stateInMemory();
    {
      using store = await withWallbox(folder.path);
      await store.addHistory(new Map([[id, [REFRESHED]]]));
    }
    spoil(folder.path, 'history');
    using store = await openAsHub(folder.path);
    expect(store.recovered).toContain('was damaged');
    expect(await store.grants()).toEqual([{ grant: grantOf(), attempt: null }]);
    expect(await store.history(id)).toEqual([]);
    await store.addHistory(new Map([[id, [REFRESHED]]]));
    expect(await store.history(id)).toEqual([REFRESHED]);
  });

  test('of something else keeps the history', async () => {
    using folder = stateInMemory();
    {
      using store = await withWallbox(folder.path);
      await store.addHistory(new Map([[id, [REFRESHED, line('unpaired', START + 1)]]]));
    }
    spoil(folder.path, 'sessions');
    using store = await openAsHub(folder.path);
    expect(store.recovered).toContain('was damaged');
    expect(await store.history(id)).toEqual([REFRESHED, line('unpaired', START + 1)]);
  });

  test('that comes while the hub runs hinders no refresh', async () => {
    using folder = stateInMemory();
    using store = await withWallbox(folder.path);
    const lines = waiting({ ...REFRESHED, count: 0.5 });
    store.takeHistoryFrom(lines);
    expect(await store.beginAttempt(grantOf(), attempt)).toBe(true);
    const successor = grantOf({ generation: 2, refreshToken: new Secret('the-next') });
    expect(await store.replaceGrant(successor)).toBe(true);
    expect(await store.grant(id)).toEqual({ grant: successor, attempt: null });
    expect(lines.left).toHaveLength(1);
  });
});

test('on a full disk the history waits, and the grant is written where that still goes', async (ctx) => {
  using folder = smallDisk(ctx, '512k');
  const disk = folder.path;
  using store = await withWallbox(disk);
  const lines = waiting(REFRESHED);
  store.takeHistoryFrom({ ...lines, waiting: () => [] });
  expect(await store.beginAttempt(grantOf(), attempt)).toBe(true);
  store.takeHistoryFrom(lines);
  const filler = join(disk, 'filler');
  expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
  // More than the block at the journal's end may have room for.
  const days = Array.from({ length: 150 }, (_, day) => line('refreshed', START + day * DAY));
  await expect(store.addHistory(new Map([[id, days]]))).rejects.toMatchObject({ code: 'store_unwritable' });
  // The ballast makes room for it.
  const successor = grantOf({ generation: 2, refreshToken: new Secret('the-next'.repeat(2000)) });
  expect(await store.replaceGrant(successor)).toBe(true);
  expect(lines.left).toEqual([REFRESHED]);
  truncateSync(filler, 0);
  await store.endAttempt(successor);
  expect(lines.left).toEqual([]);
  expect(await store.history(id)).toEqual([REFRESHED]);
  expect(await store.grant(id)).toEqual({ grant: successor, attempt: null });
});

test.each([
  ['number', '9223372036854775807'],
  ['number', '9007199254740991'],
  ['number', '1099511627700'],
  ['number', '-5'],
  ['count', '9223372036854775807'],
  ['last', '-1'],
])('a line whose %s was damaged to %s costs itself alone: what follows is kept', async (column, value) => {
  using folder = stateInMemory();
  {
    using store = await withWallbox(folder.path);
    const days = Array.from({ length: 3 }, (_, day) => line('refreshed', START + day * DAY));
    await store.addHistory(new Map([[id, days]]));
  }
  sql(folder.path, `UPDATE history SET ${column} = ${value} WHERE number = 3`);
  using store = await openAsHub(folder.path);
  const later = Array.from({ length: 5 }, (_, day) => line('refreshed', START + (10 + day) * DAY));
  for (const next of later)
    await store.addHistory(new Map([[id, [next, { ...next, first: next.first + 1, last: next.last + 1 }]]]));
  const kept = await store.history(id);
  expect(kept.slice(-4).map(({ first, count }) => [first, count])).toEqual(
    later.slice(-4).map(({ first }) => [first, 2]),
  );
  expect(kept[0]?.first === START || value === '-5').toBe(true);
});

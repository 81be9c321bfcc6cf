import { expect, test } from 'vitest';
import { sampleGrant } from '../../core/samples.ts';
import { addAppliance, HEATER, historyLine, removeAppliance, WALLBOX } from '../test-store.ts';
import { describeStores, type StorePlace } from './contract-store.ts';

const DAY = 86_400_000;
const START = Date.UTC(2031, 4, 5, 6);
const { id } = WALLBOX;

async function withWallbox(place: StorePlace) {
  const store = await place.open();
  await addAppliance(store, WALLBOX);
  await store.grants.replace(sampleGrant());
  return store;
}

const REFRESHED = historyLine('refreshed', START);
/** Somebody who was signed in did that. */
const PAIRED = { ...historyLine('paired', START + 3), user: 'Anna' };

describeStores('history', (newPlace) => {
  test('history is read back after the store is reopened, and equal events of a day share one line', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      expect(await store.history.lines(id)).toEqual([]);
      await store.history.add(new Map([[id, [REFRESHED]]]));
      const failed = historyLine('refresh_failed', START + 1, 'answer_lost');
      await store.history.add(new Map([[id, [failed, historyLine('refreshed', START + 2), PAIRED]]]));
    }
    await using store = await place.open();
    expect(await store.history.lines(id)).toEqual([
      { ...REFRESHED, last: START + 2, count: 2 },
      historyLine('refresh_failed', START + 1, 'answer_lost'),
      PAIRED,
    ]);
    expect(store.recoverySummary).toBeNull();
  });

  test('the store keeps the newest 200 history lines of each appliance', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      await addAppliance(store, HEATER);
      await store.history.add(new Map([[HEATER.id, [historyLine('unpaired', START)]]]));
      const days = Array.from({ length: 230 }, (_, day) => historyLine('refreshed', START + day * DAY));
      for (let from = 0; from < days.length; from += 50) {
        await store.history.add(new Map([[id, days.slice(from, from + 50)]]));
      }
      expect(await store.history.lines(id)).toEqual(days.slice(-200));
      expect(await store.history.lines(HEATER.id)).toHaveLength(1);
    }
    expect(await place.countRows('history')).toBe(201);
  });

  test('the removal of an appliance deletes its history, and a removed appliance gets no new lines', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    await store.history.add(new Map([[id, [REFRESHED]]]));
    await removeAppliance(store, id);
    await store.history.add(new Map([[id, [REFRESHED]]]));
    await addAppliance(store, WALLBOX);
    expect(await store.history.lines(id)).toEqual([]);
  });

  test('damaged history lines are skipped, and the other lines are kept', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      const days = [0, 1, 2, 3].map((day) => historyLine('refreshed', START + day * DAY));
      await store.history.add(new Map([[id, days]]));
    }
    await place.runSql(
      "UPDATE history SET kind = 'nonsense' WHERE number = 2; UPDATE history SET count = -1 WHERE number = 3",
    );
    await using store = await place.open();
    expect(store.recoverySummary).toBeNull();
    expect(await store.history.lines(id)).toEqual([
      historyLine('refreshed', START),
      historyLine('refreshed', START + 3 * DAY),
    ]);
    await store.history.add(new Map([[id, [historyLine('refreshed', START + 3 * DAY)]]]));
    expect(await store.history.lines(id)).toMatchObject([{ count: 1 }, { count: 2 }]);
  });

  test.each([
    ['number', '9223372036854775807'],
    ['count', '9223372036854775807'],
    ['last', '-1'],
  ])('a history line whose %s was damaged to %s does not affect the lines after it', async (column, value) => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      const days = Array.from({ length: 3 }, (_, day) => historyLine('refreshed', START + day * DAY));
      await store.history.add(new Map([[id, days]]));
    }
    await place.runSql(`UPDATE history SET ${column} = ${value} WHERE number = 3`);
    await using store = await place.open();
    const later = Array.from({ length: 5 }, (_, day) => historyLine('refreshed', START + (10 + day) * DAY));
    for (const next of later)
      await store.history.add(new Map([[id, [next, { ...next, first: next.first + 1, last: next.last + 1 }]]]));
    const kept = await store.history.lines(id);
    expect(kept.slice(-4).map(({ first, count }) => [first, count])).toEqual(
      later.slice(-4).map(({ first }) => [first, 2]),
    );
    expect(kept[0]?.first).toBe(START);
  });
});

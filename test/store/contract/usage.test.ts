import { expect, test } from 'vitest';
import type { TokenUsage } from '../../../src/core/appliances/usage.ts';
import { addAppliance, HEATER, WALLBOX } from '../test-store.ts';
import { type ContractStore, describeStores, type StorePlace } from './contract-store.ts';

const { id } = WALLBOX;
const USAGE: TokenUsage = {
  last: Date.UTC(2031, 4, 5, 6),
  days: [
    { day: 22_400, count: 3 },
    { day: 22_404, count: 12 },
  ],
};
const LATER: TokenUsage = { last: USAGE.last + 1, days: [{ day: 22_404, count: 13 }] };

async function withWallbox(place: StorePlace): Promise<ContractStore> {
  const store = await place.open();
  await addAppliance(store, WALLBOX);
  return store;
}

describeStores('usage', (newPlace) => {
  test('the usage of an appliance is read back after the store is reopened, and replaced', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      await store.saveUsage(new Map([[id, USAGE]]));
      await store.saveUsage(new Map([[id, LATER]]));
    }
    await using store = await place.open();
    expect(await store.usage()).toEqual(new Map([[id, LATER]]));
    expect(store.recoverySummary).toBeNull();
  });

  test('the removal of an appliance deletes its usage, and a removed appliance gets none', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    await store.saveUsage(new Map([[id, USAGE]]));
    await store.saveRegistry({ removedAppliances: [id] });
    expect(await store.usage()).toEqual(new Map());
    await store.saveUsage(new Map([[id, USAGE]]));
    expect(await store.usage()).toEqual(new Map());
  });

  test('usage that was damaged in the store is left out, and can be written again', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      await addAppliance(store, HEATER);
      await store.saveUsage(
        new Map([
          [id, USAGE],
          [HEATER.id, LATER],
        ]),
      );
    }
    await place.runSql(`UPDATE usage SET counts = '{"last":1,"days":[[1,-1]]}' WHERE appliance = '${id}'`);
    await using store = await place.open();
    expect(await store.usage()).toEqual(new Map([[HEATER.id, LATER]]));
    await store.saveUsage(new Map([[id, USAGE]]));
    expect((await store.usage()).get(id)).toEqual(USAGE);
  });
});

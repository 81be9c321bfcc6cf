import { expect, test } from 'vitest';
import { addAppliance, HEATER, LATER_USAGE, USAGE, WALLBOX } from '../test-store.ts';
import { type ContractStore, describeStores, type StorePlace } from './contract-store.ts';

const { id } = WALLBOX;

async function withWallbox(place: StorePlace): Promise<ContractStore> {
  const store = await place.open();
  await addAppliance(store, WALLBOX);
  return store;
}

describeStores('usage', (newPlace) => {
  test('the usage of an appliance is read back after the store is reopened, and replaced', async () => {
    await using place = await newPlace();
    const ofSeveral = { ...LATER_USAGE, connections: { [HEATER.id]: USAGE } };
    {
      await using store = await withWallbox(place);
      await store.usage.save(new Map([[id, USAGE]]));
      await store.usage.save(new Map([[id, ofSeveral]]));
    }
    await using store = await place.open();
    expect(await store.usage.own()).toEqual(new Map([[id, ofSeveral]]));
    expect(store.recoverySummary).toBeNull();
  });

  test('the removal of an appliance deletes its usage, and a removed appliance gets none', async () => {
    await using place = await newPlace();
    await using store = await withWallbox(place);
    await store.usage.save(new Map([[id, USAGE]]));
    await store.registry.save({ removedAppliances: [id] });
    expect(await store.usage.own()).toEqual(new Map());
    await store.usage.save(new Map([[id, USAGE]]));
    expect(await store.usage.own()).toEqual(new Map());
  });

  test('usage that was damaged in the store is left out, and can be written again', async () => {
    await using place = await newPlace();
    {
      await using store = await withWallbox(place);
      await addAppliance(store, HEATER);
      await store.usage.save(
        new Map([
          [id, USAGE],
          [HEATER.id, LATER_USAGE],
        ]),
      );
    }
    await place.runSql(`UPDATE usage SET counts = '{"last":1,"days":[[1,-1]]}' WHERE appliance = '${id}'`);
    await using store = await place.open();
    expect(await store.usage.own()).toEqual(new Map([[HEATER.id, LATER_USAGE]]));
    await store.usage.save(new Map([[id, USAGE]]));
    expect((await store.usage.own()).get(id)).toEqual(USAGE);
  });
});

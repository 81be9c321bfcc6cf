import { expect, test } from 'vitest';
import { describeStores } from './contract-store.ts';

describeStores('settings', (newPlace) => {
  test('a setting is read back after the store is reopened', async () => {
    await using place = await newPlace();
    {
      await using store = await place.open();
      await store.settings.save({ hub_id: 'one' });
      await store.settings.save({ hub_id: 'two' });
      expect(await store.settings.get('hub_id')).toBe('two');
    }
    await using store = await place.open();
    expect(await store.settings.get('hub_id')).toBe('two');
    expect(await store.settings.get('another')).toBeNull();
  });

  test('settings are replaced together, unless one of them has another value than was read', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    const nothing = { ca_key: null, ca_certificate: null };
    expect(await store.settings.replace(nothing, { ca_key: 'a key', ca_certificate: 'its certificate' })).toBe(true);
    expect(await store.settings.replace(nothing, { ca_old: 'another', ca_key: 'another key' })).toBe(false);
    expect(await store.settings.replace({ ca_key: 'a key', ca_old: 'another' }, { ca_key: 'another key' })).toBe(false);
    const all = ['ca_key', 'ca_certificate', 'ca_old'];
    expect(await store.settings.getAll(all)).toEqual(
      new Map([
        ['ca_key', 'a key'],
        ['ca_certificate', 'its certificate'],
      ]),
    );
    expect(await store.settings.replace({ ca_key: 'a key', ca_old: null }, { ca_key: 'another key' })).toBe(true);
    expect(await store.settings.get('ca_key')).toBe('another key');
  });

  test('of several callers that create the same settings at once, one does', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    const created = ['one', 'two', 'three', 'four', 'five'].map((value) =>
      store.settings.replace({ setup_code: null }, { setup_code: value }),
    );
    const results = await Promise.all(created);
    expect(results.filter((isCreated) => isCreated)).toHaveLength(1);
    expect(await store.settings.get('setup_code')).toBe(['one', 'two', 'three', 'four', 'five'][results.indexOf(true)]);
  });
});

import { expect, test } from 'vitest';
import { describeStores } from './contract-store.ts';

describeStores('settings', (newPlace) => {
  test('a setting is read back after the store is reopened', async () => {
    await using place = await newPlace();
    {
      await using store = await place.open();
      await store.saveSetting('hub_id', 'one');
      await store.saveSetting('hub_id', 'two');
      expect(await store.setting('hub_id')).toBe('two');
    }
    await using store = await place.open();
    expect(await store.setting('hub_id')).toBe('two');
    expect(await store.setting('another')).toBeNull();
  });

  test('settings are created together, unless one of them is set already', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    expect(await store.createSettings({ ca_key: 'a key', ca_certificate: 'its certificate' })).toBe(true);
    expect(await store.createSettings({ ca_old: 'another', ca_key: 'another key' })).toBe(false);
    expect(await store.setting('ca_key')).toBe('a key');
    expect(await store.setting('ca_old')).toBeNull();
  });

  test('of several callers that create the same settings at once, one does', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    const created = ['one', 'two', 'three', 'four', 'five'].map((value) => store.createSettings({ setup_code: value }));
    const results = await Promise.all(created);
    expect(results.filter((isCreated) => isCreated)).toHaveLength(1);
    expect(await store.setting('setup_code')).toBe(['one', 'two', 'three', 'four', 'five'][results.indexOf(true)]);
  });

  test('changes of a setting at once are all kept', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    const add = (entry: number) => (stored: string | null) => JSON.stringify([...JSON.parse(stored ?? '[]'), entry]);
    const entries = Array.from({ length: 8 }, (_, entry) => entry);
    const values = await Promise.all(entries.map((entry) => store.changeSetting('page_sessions', add(entry))));
    expect(JSON.parse((await store.setting('page_sessions')) ?? '').toSorted()).toEqual(entries);
    expect(values).toContain(await store.setting('page_sessions'));
  });

  test('several settings are saved together, and the others stay', async () => {
    await using place = await newPlace();
    await using store = await place.open();
    await store.saveSettings({ hub_id: 'the hub', setup_code: 'a code' });
    await store.saveSettings({ setup_code: 'another code' });
    expect([await store.setting('hub_id'), await store.setting('setup_code')]).toEqual(['the hub', 'another code']);
  });
});

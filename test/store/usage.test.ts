import { expect, test } from 'vitest';
import type { TokenUsage } from '../../src/core/appliances/usage.ts';
import { Secret } from '../../src/core/secret.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { corruptTable, runSql } from './corrupt-store.ts';
import { addAppliance, LATER_USAGE, open, openAsHub, USAGE, WALLBOX } from './test-store.ts';

const { id } = WALLBOX;

async function withWallbox(path: string) {
  const store = open(path);
  await addAppliance(store, WALLBOX);
  await store.grants.replace(sampleGrant());
  return store;
}

/** A source with pending usage of the wallbox. */
function pendingSource(usage: TokenUsage) {
  const left = new Map([[id, usage]]);
  return { left, pending: () => new Map(left), markWritten: () => left.clear() };
}

const attempt = { token: 'hash', at: instantAt(1) };

test.each<[string, (store: ReturnType<typeof open>) => Promise<unknown>]>([
  ['with the beginning of a refresh', (store) => store.grants.beginAttempt(sampleGrant(), attempt)],
  ['alone', (store) => store.usage.save(new Map([[id, LATER_USAGE]]))],
])('the usage of an appliance is replaced %s, and survives a crash', async (how, write) => {
  using folder = memoryStateFolder();
  {
    using store = await withWallbox(folder.path);
    await store.usage.save(new Map([[id, USAGE]]));
    const pending = pendingSource(LATER_USAGE);
    store.usage.setSource(pending);
    await write(store);
    expect(pending.left.size).toBe(how === 'alone' ? 1 : 0);
  }
  using store = await openAsHub(folder.path);
  expect(await store.usage.own()).toEqual(new Map([[id, LATER_USAGE]]));
  expect(store.recoverySummary).toBeNull();
});

test('a damaged table of usage loses the usage, and no grant', async () => {
  using folder = memoryStateFolder();
  {
    using store = await withWallbox(folder.path);
    await store.usage.save(new Map([[id, USAGE]]));
  }
  corruptTable(folder.path, 'usage');
  using store = await openAsHub(folder.path);
  expect(store.recoverySummary).toContain('was damaged');
  expect(await store.grants.all()).toEqual([{ grant: sampleGrant(), attempt: null }]);
  await store.usage.save(new Map([[id, USAGE]]));
  expect(await store.usage.own()).toEqual(new Map([[id, USAGE]]));
});

test('usage that cannot be written does not prevent a refresh from being saved', async () => {
  using folder = memoryStateFolder();
  (await withWallbox(folder.path))[Symbol.dispose]();
  runSql(folder.path, "CREATE TRIGGER broken BEFORE INSERT ON usage BEGIN SELECT RAISE(ABORT, 'broken'); END");
  using store = open(folder.path);
  const pending = pendingSource(USAGE);
  store.usage.setSource(pending);
  expect(await store.grants.beginAttempt(sampleGrant(), attempt)).toMatchObject({ kind: 'begun' });
  const successor = sampleGrant({ generation: 2, refreshToken: new Secret('the-next') });
  expect(await store.grants.replace(successor)).toBe(true);
  expect(await store.grants.get(id)).toEqual({ grant: successor, attempt: null });
  expect(pending.left.size).toBe(1);
});

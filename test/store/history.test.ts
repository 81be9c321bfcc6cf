import { existsSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { StoredHistoryEntry } from '../../src/core/reports/history.ts';
import { Secret } from '../../src/core/secret.ts';
import { instantAt, SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { completePairing } from '../support/stored-grants.ts';
import { corruptTable } from './corrupt-store.ts';
import { mountSmallDisk } from './small-disk.ts';
import { addAppliance, historyLine, open, openAsHub, WALLBOX } from './test-store.ts';

const DAY = 86_400_000;
const START = Date.UTC(2031, 4, 5, 6);
const { id } = WALLBOX;

/** A history source with pending lines of the wallbox. */
function pendingSource(...lines: StoredHistoryEntry[]) {
  const left = [...lines];
  return {
    left,
    pending: (appliance: string) => (appliance === id ? left : []),
    markWritten: () => void left.splice(0),
  };
}

async function withWallbox(path: string) {
  const store = open(path);
  await addAppliance(store, WALLBOX);
  await store.grants.replace(sampleGrant());
  return store;
}

const REFRESHED = historyLine('refreshed', START);
const attempt = { token: 'hash', at: instantAt(1) };
const exchanging = samplePairing({ kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(4) });

describe('pending history', () => {
  test.each<[string, (store: ReturnType<typeof open>) => Promise<unknown>]>([
    ['with the beginning of a refresh', (store) => store.grants.beginAttempt(sampleGrant(), attempt)],
    ['with the end of a pairing', (store) => completePairing(store, exchanging, sampleGrant({ generation: 2 }))],
    ['alone', (store) => store.history.add(new Map([[id, [REFRESHED]]]))],
  ])('pending history is written %s, and survives a crash', async (_, write) => {
    using folder = memoryStateFolder();
    {
      using store = await withWallbox(folder.path);
      const lines = pendingSource(REFRESHED);
      store.history.setSource(lines);
      expect(await store.history.lines(id)).toEqual([]);
      await write(store);
    }
    using store = await openAsHub(folder.path);
    expect(await store.history.lines(id)).toEqual([REFRESHED]);
    expect(store.recoverySummary).toBeNull();
  });
});

describe('damaged history', () => {
  test('a damaged history table loses the history, and no grant', async () => {
    using folder = memoryStateFolder();
    {
      using store = await withWallbox(folder.path);
      await store.history.add(new Map([[id, [REFRESHED]]]));
    }
    corruptTable(folder.path, 'history');
    using store = await openAsHub(folder.path);
    expect(store.recoverySummary).toContain('was damaged');
    expect(await store.grants.all()).toEqual([{ grant: sampleGrant(), attempt: null }]);
    expect(await store.history.lines(id)).toEqual([]);
    await store.history.add(new Map([[id, [REFRESHED]]]));
    expect(await store.history.lines(id)).toEqual([REFRESHED]);
  });

  test('a history line that cannot be written does not prevent a refresh from being saved', async () => {
    using folder = memoryStateFolder();
    using store = await withWallbox(folder.path);
    const lines = pendingSource({ ...REFRESHED, count: 0.5 });
    store.history.setSource(lines);
    expect(await store.grants.beginAttempt(sampleGrant(), attempt)).toMatchObject({ kind: 'begun' });
    const successor = sampleGrant({ generation: 2, refreshToken: new Secret('the-next') });
    expect(await store.grants.replace(successor)).toBe(true);
    expect(await store.grants.get(id)).toEqual({ grant: successor, attempt: null });
    expect(lines.left).toHaveLength(1);
  });
});

test('the ballast is kept if a grant can not be written for another reason than a full disk', async () => {
  using folder = memoryStateFolder();
  using store = await withWallbox(folder.path);
  await store.grants.beginAttempt(sampleGrant(), attempt);
  const unwritable = sampleGrant({ generation: 2, lifetime: 1n as unknown as number });
  await expect(store.grants.replace(unwritable)).rejects.toMatchObject({ code: 'store_unwritable' });
  expect(existsSync(join(folder.path, 'ballast'))).toBe(true);
});

test('history waits while the disk is full, and a grant is still written with the help of the ballast', async (ctx) => {
  using folder = mountSmallDisk(ctx, '512k');
  const disk = folder.path;
  using store = await withWallbox(disk);
  const lines = pendingSource(REFRESHED);
  store.history.setSource({ ...lines, pending: () => [] });
  expect(await store.grants.beginAttempt(sampleGrant(), attempt)).toMatchObject({ kind: 'begun' });
  store.history.setSource(lines);
  const filler = join(disk, 'filler');
  expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
  // More than the last block of the WAL can have room for.
  const days = Array.from({ length: 150 }, (_, day) => historyLine('refreshed', START + day * DAY));
  await expect(store.history.add(new Map([[id, days]]))).rejects.toMatchObject({ code: 'store_unwritable' });
  // The hub deletes the ballast to make room.
  const successor = sampleGrant({ generation: 2, refreshToken: new Secret('the-next'.repeat(2000)) });
  expect(await store.grants.replace(successor)).toBe(true);
  expect(lines.left).toEqual([REFRESHED]);
  truncateSync(filler, 0);
  await store.grants.endAttempt(successor);
  expect(lines.left).toEqual([]);
  expect(await store.history.lines(id)).toEqual([REFRESHED]);
  expect(await store.grants.get(id)).toEqual({ grant: successor, attempt: null });
});

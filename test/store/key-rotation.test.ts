import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { jweSealing } from '../../src/store/keys/sealing.ts';
import { systemRandom } from '../../src/system/random.ts';
import { sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { runSql } from './corrupt-store.ts';
import {
  contentOf,
  fillDirectory,
  heaterGrant,
  keyOf,
  open,
  openedCounts,
  pairing,
  rotate,
  rotateOpen,
  SEALED,
  start,
  WHOLE,
  wallboxGrant,
} from './rotated-store.ts';
import { mountSmallDisk } from './small-disk.ts';
import { addAppliance, HEATER, ownConnection, removeAppliance, updateAppliance, WALLBOX } from './test-store.ts';

/** The sealed values of the grants. */
function sealedTokens(path: string): string[] {
  using stack = new DisposableStack();
  const database = stack.adopt(new Database(join(path, 'latchkey.db')), (opened) => opened.close());
  return database.prepare('SELECT sealed FROM grants').pluck().all().map(String);
}

/** The sealed grant of a removed appliance, which remains in free pages of the database. */
async function removedTokens(path: string): Promise<string[]> {
  const id = '77777777-7777-4777-8777-777777777777';
  {
    const { store } = await open(path);
    using _open = store;
    await addAppliance(store, { ...WALLBOX, id, connection: id, clientId: id, name: 'removed' });
    await store.grants.replace(sampleGrant({ connection: id, accessToken: new Secret('a'.repeat(3000)) }));
  }
  const [sealed = ''] = sealedTokens(path).filter((text) => text.length > 3000);
  const { store } = await open(path);
  using _open = store;
  await removeAppliance(store, id);
  return [sealed];
}

/** The files that still contain parts of these texts, free pages included. */
function filesContaining(path: string, texts: readonly string[]): string[] {
  const parts = texts
    .flatMap((text) => [200, 300, 400, 1500, 2500, 3500].map((from) => text.slice(from, from + 30)))
    .filter((part) => part.length === 30);
  return readdirSync(path).filter((name) => {
    const content = readFileSync(join(path, name), 'latin1');
    return parts.some((part) => content.includes(part));
  });
}

test('a rotation of the store key reseals the store and its snapshot, and the old key opens nothing', async () => {
  using folder = memoryStateFolder();
  await fillDirectory(folder.path);
  const before = keyOf(folder.path);
  const sealed = [...(await removedTokens(folder.path)), ...sealedTokens(folder.path)];
  expect(openedCounts(folder.path, before)).toEqual(SEALED);
  expect(filesContaining(folder.path, sealed)).not.toEqual([]);
  expect(await rotate(folder.path)).toEqual({ leftovers: [], snapshotProblem: null, isCredential: false });
  expect(keyOf(folder.path)).not.toEqual(before);
  expect(openedCounts(folder.path, before)).toEqual({});
  expect(openedCounts(folder.path, keyOf(folder.path))).toEqual(SEALED);
  expect(filesContaining(folder.path, sealed)).toEqual([]);
  expect(readdirSync(folder.path).toSorted()).toEqual(['latchkey.db', 'latchkey.db.copy', 'store.key']);
  expect(await start(folder.path)).toEqual(WHOLE);
  writeFileSync(join(folder.path, 'store.key'), Buffer.from(before).toString('base64url'), { mode: 0o600 });
  await expect(start(folder.path)).rejects.toMatchObject({ code: 'store_key_wrong' });
});

test('writes during and after a rotation of the store key are sealed with the new key', async () => {
  using folder = memoryStateFolder();
  await fillDirectory(folder.path);
  const before = keyOf(folder.path);
  {
    const { store, keyRotation } = await open(folder.path);
    using _open = store;
    const next = (generation: number) => store.grants.replace({ ...wallboxGrant, generation });
    const attempt = { token: 'hash', at: wallboxGrant.obtained };
    const written = [
      store.settings.save({ hub_id: 'during' }),
      store.grants.beginAttempt(heaterGrant, attempt),
      next(2),
    ];
    const rotated = rotateOpen(store, keyRotation);
    written.push(next(3), store.pairings.save({ ...pairing, id: 'another' }), store.sessions.end('hash-heater'));
    await Promise.all([rotated, ...written]);
    expect(await next(4)).toBe(true);
    expect(await updateAppliance(store, { ...HEATER, softwareId: 'another' })).toBe(true);
    expect(await store.registry.save({ updatedConnections: [{ ...ownConnection(HEATER), scope: 'Another' }] })).toBe(
      true,
    );
  }
  expect(openedCounts(folder.path, before)).toEqual({});
  expect(await start(folder.path)).toMatchObject({
    settings: ['during', 'others keep here'],
    connections: [{ scope: 'Another' }, ownConnection(WALLBOX)],
    appliances: [{ softwareId: 'another' }, WALLBOX],
    grants: [{ generation: 4 }, { connection: HEATER.id }],
    sessions: ['hash-wallbox'],
    pairings: [pairing, { id: 'another' }],
    damaged: [],
    recovered: null,
  });
});

test('a rotation of the store key does not reseal rows that were changed without the key', async () => {
  using folder = memoryStateFolder();
  await fillDirectory(folder.path);
  runSql(
    folder.path,
    `UPDATE appliances SET client_id = 'mine' WHERE name = 'wallbox';
     UPDATE connections SET portal = 'mine' WHERE name = 'heater';
     UPDATE sessions SET hash = 'mine' WHERE hash = 'hash-heater'`,
  );
  // Without a snapshot the changed rows can't be restored.
  truncateSync(join(folder.path, 'latchkey.db.copy'));
  await rotate(folder.path);
  expect(await start(folder.path)).toMatchObject({
    connections: [{ name: 'heater', portal: 'mine', damaged: true }, { name: 'wallbox' }],
    damaged: [WALLBOX.id],
    sessions: ['hash-wallbox'],
  });
});

test('a rotation of the store key lists the files that only the old key opens', async () => {
  using folder = memoryStateFolder();
  await fillDirectory(folder.path);
  const damaged = join(folder.path, 'latchkey.db.damaged-2031-05-05T06-00-00');
  writeFileSync(damaged, 'a store of before');
  mkdirSync(join(folder.path, 'upgrades'));
  const { leftovers } = await rotate(folder.path);
  expect(leftovers).toEqual([damaged, join(folder.path, 'upgrades')]);
});

test.each(['half of a k', 'A'.repeat(43)])('an unused new store key (%j) is deleted', async (text) => {
  using folder = memoryStateFolder();
  await fillDirectory(folder.path);
  writeFileSync(join(folder.path, 'store.key.next'), text, { mode: 0o600 });
  expect(await start(folder.path)).toEqual(WHOLE);
  expect(existsSync(join(folder.path, 'store.key.next'))).toBe(false);
  writeFileSync(join(folder.path, 'store.key.next'), text, { mode: 0o600 });
  await rotate(folder.path);
  expect(keyOf(folder.path).toString('base64url')).not.toBe(text);
  expect(await start(folder.path)).toEqual(WHOLE);
});

/** A state directory and a credentials directory with a store key, and a second key that is not there yet. */
async function withCredential(path: string) {
  const [state, credentials] = [join(path, 'state'), join(path, 'credentials')];
  for (const made of [state, credentials]) mkdirSync(made, { mode: 0o700 });
  const file = (name: string) => join(credentials, `secrets_${name}`);
  const [before, after] = [systemRandom.token(32), systemRandom.token(32)];
  writeFileSync(file('store.key'), before);
  await fillDirectory(state, credentials);
  return { state, credentials, file, before, after };
}

/** Seals the store with another key, like a rotation that is killed right afterwards. */
async function reseal(state: string, credentials: string, key: string): Promise<void> {
  const { store } = await open(state, credentials);
  using _open = store;
  await store.reseal(jweSealing(Buffer.from(key, 'base64url')));
}

describe('store key as a systemd credential', () => {
  test('a rotation takes the new store key from the credential beside the old one, which its owner then replaces', async () => {
    using folder = memoryStateFolder();
    const { state, credentials, file, before, after } = await withCredential(folder.path);
    await expect(rotate(state, credentials)).rejects.toMatchObject({
      code: 'not_allowed',
      message: expect.stringMatching(/systemd credential.*store\.key\.next/),
    });
    writeFileSync(file('store.key.next'), after);
    expect(await start(state, credentials)).toEqual(WHOLE);
    expect(openedCounts(state, Buffer.from(before, 'base64url'))).toEqual(SEALED);
    expect(await rotate(state, credentials)).toMatchObject({ isCredential: true });
    expect(openedCounts(state, Buffer.from(before, 'base64url'))).toEqual({});
    expect(await start(state, credentials)).toEqual(WHOLE);
    await expect(rotate(state, credentials)).rejects.toMatchObject({
      code: 'not_allowed',
      message: expect.stringContaining('replace store.key with that file'),
    });
    execFileSync('mv', [file('store.key.next'), file('store.key')]);
    expect(await start(state, credentials)).toEqual(WHOLE);
    expect(readdirSync(state).toSorted()).toEqual(['latchkey.db', 'latchkey.db.copy']);
  });

  test('a start makes the snapshot again that an interrupted rotation left sealed with the old key', async () => {
    using folder = memoryStateFolder();
    const { state, credentials, file, before, after } = await withCredential(folder.path);
    writeFileSync(file('store.key.next'), after);
    await reseal(state, credentials, after);
    expect(Object.keys(openedCounts(state, Buffer.from(before, 'base64url')))).toContain('latchkey.db.copy');
    expect(await start(state, credentials)).toEqual(WHOLE);
    expect(openedCounts(state, Buffer.from(before, 'base64url'))).toEqual({});
  });
});

describe('start that cannot make a snapshot', () => {
  const NO_COPY = 'there is no room';

  async function startWithoutSnapshot(path: string, credentials?: string) {
    const { store, keyRotation } = await open(path, credentials);
    using _open = store;
    return (await keyRotation.resumeInterrupted(() => Promise.reject(new Error(NO_COPY))))?.snapshotProblem;
  }

  const hasSnapshot = (path: string) => existsSync(join(path, 'latchkey.db.copy'));

  test('a start removes a snapshot that only the old key opens, and says why there is no new one', async () => {
    using folder = memoryStateFolder();
    const { state, credentials, file, after } = await withCredential(folder.path);
    writeFileSync(file('store.key.next'), after);
    await reseal(state, credentials, after);
    expect(hasSnapshot(state)).toBe(true);
    expect(await startWithoutSnapshot(state, credentials)).toBe(NO_COPY);
    expect(hasSnapshot(state)).toBe(false);
  });
});

describe('rotation on an unwritable disk', () => {
  test('a rotation on a full or read-only disk leaves the store whole, and succeeds once the disk is writable', async (ctx) => {
    using folder = mountSmallDisk(ctx, '1m');
    const disk = folder.path;
    await fillDirectory(disk);
    const before = keyOf(disk);
    const filler = join(disk, 'filler');
    const { store, keyRotation } = await open(disk);
    for (const room of [0, 8192, 32_768]) {
      expect(() => writeFileSync(filler, Buffer.alloc(2_000_000))).toThrow(/ENOSPC/);
      truncateSync(filler, Math.max(0, readFileSync(filler).length - room));
      await rotateOpen(store, keyRotation).then(
        ({ snapshotProblem }) => expect(snapshotProblem).toMatch(/no room|disk is full/),
        (error: unknown) => expect(error).toMatchObject({ code: 'store_unwritable' }),
      );
      expect(await contentOf(store), `with ${room} bytes`).toEqual(WHOLE);
      truncateSync(filler, 0);
      using other = memoryStateFolder();
      cpSync(disk, other.path, { recursive: true });
      expect(await start(other.path), `a start with ${room} bytes`).toEqual(WHOLE);
    }
    store[Symbol.dispose]();
    execFileSync('mount', ['-o', 'remount,ro', disk]);
    await expect(rotate(disk)).rejects.toMatchObject({ code: 'store_unwritable' });
    execFileSync('mount', ['-o', 'remount,rw', disk]);
    expect(await rotate(disk)).toMatchObject({ snapshotProblem: null });
    expect(openedCounts(disk, before)).toEqual({});
    expect(await start(disk)).toEqual(WHOLE);
  });
});

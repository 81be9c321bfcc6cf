import { execFileSync } from 'node:child_process';
import { mkdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliance.ts';
import { writeDailyCopy } from '../../src/store/daily-copy.ts';
import { KEY_BYTES } from '../../src/store/sealing.ts';
import { at, grantOf, LINK, pairingOf } from '../core/samples.ts';
import { stateInMemory } from '../support/state-folder.ts';
import { FRIDGE, HEATER, type open, openAsHub, sessionOf, WALLBOX } from './opened.ts';
import { type OldState, writeSchema1 } from './schema-1.ts';
import { spoil } from './spoil.ts';

const wallboxGrant = grantOf({
  appliance: WALLBOX.id,
  generation: 7,
  doubt: { lostAt: at(5), sends: 2 },
  refused: at(6),
});
const attempt = { token: 'hash-of-the-refresh-token', at: wallboxGrant.obtained };
const PAIRINGS = [
  pairingOf({ kind: 'asking' }),
  pairingOf({ kind: 'waiting', link: LINK }, { spentCodes: ['a'], setback: 'code_refused' }),
  pairingOf({ kind: 'exchanging', link: LINK, since: at(4) }),
  pairingOf({ kind: 'ended', result: { kind: 'paired', scope: null } }),
  pairingOf({ kind: 'ended', result: { kind: 'failed', reason: 'expired' } }),
].map((pairing, index) => ({ ...pairing, id: `pairing-${index}` }));

const OLD: OldState = {
  appliances: [
    { id: WALLBOX.id, name: 'wallbox', hash: 'hash-1' },
    { id: HEATER.id, name: 'heater', hash: 'hash-2' },
  ],
  grants: [wallboxGrant],
  forgotten: [HEATER.id],
  pairings: PAIRINGS,
};
const appliance = (id: string, name: string, hash: string): Appliance => ({
  ...{ id, clientId: id, name, scope: 'Monitoring', portal: 'home', credentials: { kind: 'secret', hash } },
  ...{ origin: 'added', waitingSince: null, softwareId: null },
});
const EXPECTED = {
  hub: 'the hub',
  appliances: [appliance(HEATER.id, 'heater', 'hash-2'), appliance(WALLBOX.id, 'wallbox', 'hash-1')],
  grants: [{ grant: wallboxGrant, attempt }],
  forgotten: 4,
  pairings: PAIRINGS,
  sessions: [],
  invites: [],
};

async function contentOf(store: ReturnType<typeof open>) {
  return {
    hub: await store.setting('hub_id'),
    appliances: await store.appliances(),
    grants: await store.grants(),
    forgotten: await store.generation(HEATER.id),
    pairings: await store.pairings(),
    sessions: await store.sessions(),
    invites: await store.invites(),
  };
}

function versionOf(path: string): number {
  using stack = new DisposableStack();
  const database = stack.adopt(new Database(join(path, 'latchkey.db')), (opened) => opened.close());
  return Number(database.pragma('user_version', { simple: true }));
}

describe('a store of schema 1', () => {
  test('has lost nothing when it was brought to the newest, and takes all that is new', async () => {
    using folder = stateInMemory();
    await writeSchema1(folder.path, OLD);
    {
      using store = await openAsHub(folder.path);
      expect(await contentOf(store)).toEqual(EXPECTED);
      expect(store.recovered).toBeNull();
      expect(await store.addAppliance(FRIDGE)).toBe(true);
      expect(await store.addAppliance({ ...FRIDGE, id: 'another', name: 'another', clientId: HEATER.id })).toBe(false);
      await store.saveSession(sessionOf(WALLBOX, 'one'));
      expect(await store.distrust(WALLBOX.id, 7, at(8))).toBe(true);
    }
    using store = await openAsHub(folder.path);
    expect(await contentOf(store)).toEqual({
      ...EXPECTED,
      appliances: [FRIDGE, ...EXPECTED.appliances],
      grants: [{ grant: { ...wallboxGrant, distrusted: at(8) }, attempt }],
      sessions: [sessionOf(WALLBOX, 'one')],
    });
    await store.removeAppliance(WALLBOX.id);
    expect(await contentOf(store)).toMatchObject({ grants: [], pairings: [], sessions: [] });
  });

  test('stays as it is where the key is another one', async () => {
    using folder = stateInMemory();
    await writeSchema1(folder.path, OLD);
    const other = openAsHub(folder.path, new Uint8Array(KEY_BYTES).fill(8));
    await expect(other).rejects.toMatchObject({ code: 'store_key_wrong' });
    expect(versionOf(folder.path)).toBe(1);
  });

  test.each([
    ['pairings', { ...EXPECTED, pairings: [] }],
    ['grants', { ...EXPECTED, grants: [], forgotten: 0 }],
  ])('in which the %s are damaged is put together again all the same', async (table, expected) => {
    using folder = stateInMemory();
    await writeSchema1(folder.path, OLD);
    spoil(folder.path, table);
    using store = await openAsHub(folder.path);
    expect(await contentOf(store)).toEqual(expected);
    expect(store.recovered).toContain('was damaged');
  });

  test('is had from its daily copy, also where that is of schema 1', async () => {
    using folder = stateInMemory();
    await writeSchema1(folder.path, OLD, 'latchkey.db.copy');
    writeFileSync(join(folder.path, 'latchkey.db'), 'this is no database');
    using store = await openAsHub(folder.path);
    const doubt = { lostAt: at(5), sends: 2 };
    expect(await contentOf(store)).toMatchObject({ appliances: EXPECTED.appliances, grants: [{ grant: { doubt } }] });
  });

  test('has its copy made anew, which is sealed as before until then', async () => {
    using folder = stateInMemory();
    for (const file of ['latchkey.db', 'latchkey.db.copy']) await writeSchema1(folder.path, OLD, file);
    using store = await openAsHub(folder.path);
    expect(store.copyIsDated).toBe(true);
    await writeDailyCopy(store);
    store[Symbol.dispose]();
    using again = await openAsHub(folder.path);
    expect(again.copyIsDated).toBe(false);
  });

  test('is served from memory where nothing can be written, and brought to the newest as soon as it can be', async (ctx) => {
    if (process.getuid?.() !== 0) ctx.skip('mounting a small disk needs root');
    using folder = stateInMemory();
    const disk = join(folder.path, 'disk');
    mkdirSync(disk, { mode: 0o700 });
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k,mode=700', 'tmpfs', disk], { stdio: 'pipe' });
    } catch {
      ctx.skip('no tmpfs can be mounted here');
    }
    try {
      await writeSchema1(disk, OLD);
      execFileSync('mount', ['-o', 'remount,ro', disk]);
      {
        using store = await openAsHub(disk);
        expect(store.unwritable).toMatch(/EROFS/);
        expect(await contentOf(store)).toEqual(EXPECTED);
      }
      execFileSync('mount', ['-o', 'remount,rw', disk]);
      const filler = join(disk, 'filler');
      expect(() => writeFileSync(filler, Buffer.alloc(1_000_000))).toThrow(/ENOSPC/);
      using store = await openAsHub(disk);
      expect(store.unwritable).toContain('the disk is full: make room');
      expect(await contentOf(store)).toEqual(EXPECTED);
      await expect(store.saveSession(sessionOf(WALLBOX, 'one'))).rejects.toMatchObject({ code: 'store_unwritable' });
      expect(await store.tryToWrite()).toBe(false);
      truncateSync(filler, 0);
      expect(await store.tryToWrite()).toBe(true);
      expect(await contentOf(store)).toEqual(EXPECTED);
      await store.saveSession(sessionOf(WALLBOX, 'one'));
      expect(await store.sessions()).toHaveLength(1);
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  });
});

import { CompactEncrypt, decodeProtectedHeader } from 'jose';
import { describe, expect, test } from 'vitest';
import type { BackupContents } from '../../src/core/backup-contents.ts';
import { Failure, messageOf } from '../../src/core/failure.ts';
import { Secret } from '../../src/core/secret.ts';
import { captureState, createBackup, restoreBackup, restoreState } from '../../src/store/backup/backup.ts';
import {
  decryptWithPassphrase,
  encryptWithPassphrase,
  parseBackup,
  serializeBackup,
} from '../../src/store/backup/backup-file.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { longestTurnShare } from '../support/loop-turns.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { generationOf } from '../support/stored-grants.ts';
import { runSql } from './corrupt-store.ts';
import { addAppliance, HEATER, open, ownConnection, readFilesAsText, WALLBOX } from './test-store.ts';

const MADE = Date.UTC(2031, 4, 5, 6);
const PASSPHRASE = new Secret('correct horse battery staple');
const doubt = { kind: 'copy', lostAt: { boot: '', uptime: 0, wall: MADE }, sends: 0 } as const;
const wallboxGrant = sampleGrant({ connection: WALLBOX.id, generation: 5 });
const heaterGrant = sampleGrant({
  connection: HEATER.id,
  generation: 2,
  refreshToken: new Secret('another-refresh-token'),
});

/** A store in a new folder. */
function tempStore(): Disposable & { readonly path: string; readonly store: SqliteStore } {
  const folder = memoryStateFolder();
  const store = open(folder.path);
  return {
    path: folder.path,
    store,
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      folder[Symbol.dispose]();
    },
  };
}

/** The backup state of a hub with two appliances. */
async function sampleBackupState(): Promise<BackupContents> {
  using temp = tempStore();
  await fill(temp.store);
  return captureState(temp.store, MADE);
}

async function fill(store: SqliteStore): Promise<void> {
  for (const appliance of [WALLBOX, HEATER]) await addAppliance(store, appliance);
  await saveGenerations(store, wallboxGrant);
  await saveGenerations(store, heaterGrant);
  await store.pairings.save(samplePairing({ kind: 'waiting', link: SAMPLE_LINK }));
  await store.settings.save({ hub_id: 'the hub' });
  await store.settings.save({ ca_key: 'the key of the CA' });
}

/** Saves a grant, and every generation before it. */
async function saveGenerations(store: SqliteStore, grant: ReturnType<typeof sampleGrant>): Promise<void> {
  for (let generation = 1; generation <= grant.generation; generation++) {
    expect(await store.grants.replace({ ...grant, generation })).toBe(true);
  }
}

async function grantsOf(store: SqliteStore) {
  return (await store.grants.all()).map(({ grant }) => grant);
}

test('a backup contains the settings, the appliances and their grants, and no pairings', async () => {
  expect(await sampleBackupState()).toEqual({
    made: MADE,
    settings: new Map([
      ['ca_key', 'the key of the CA'],
      ['hub_id', 'the hub'],
    ]),
    connections: [WALLBOX, HEATER].map(ownConnection),
    appliances: [WALLBOX, HEATER],
    grants: [wallboxGrant, heaterGrant],
    sessions: [],
  });
});

test('the rows of a backup are read in one turn of the event loop, and decrypted in others', async () => {
  using temp = tempStore();
  const ids = Array.from({ length: 500 }, () => crypto.randomUUID());
  const appliances = ids.map((id) => ({ ...WALLBOX, id, clientId: id, name: `a-${id}`, connection: id }));
  await temp.store.registry.save({ addedConnections: appliances.map(ownConnection), addedAppliances: appliances });
  for (const id of ids) await temp.store.grants.replace(sampleGrant({ connection: id, generation: 1 }));
  // To read the rows takes more than half of the work.
  expect(await longestTurnShare(() => captureState(temp.store, MADE))).toBeLessThan(0.85);
  expect((await captureState(temp.store, MADE)).grants).toHaveLength(ids.length);
});

test('a backup decrypts to the same state, and reveals nothing without its passphrase', async () => {
  const copy = await sampleBackupState();
  const sealed = await encryptWithPassphrase(serializeBackup(copy), PASSPHRASE);
  expect(parseBackup(await decryptWithPassphrase(sealed, PASSPHRASE))).toEqual(copy);
  expect(sealed).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\.[\w-]+\.[\w-]+$/);
  expect(decodeProtectedHeader(sealed)['p2c']).toBeGreaterThanOrEqual(210_000);
  expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain(WALLBOX.id);
});

test('a grant that was in doubt in the backup, or had no refresh token, is restored so', async () => {
  using temp = tempStore();
  const inDoubt = sampleGrant({ connection: WALLBOX.id, doubt: { lostAt: wallboxGrant.obtained, sends: 2 } });
  const withoutRefreshToken = sampleGrant({ connection: HEATER.id, refreshToken: null });
  for (const appliance of [WALLBOX, HEATER]) await addAppliance(temp.store, appliance);
  for (const grant of [inDoubt, withoutRefreshToken]) await saveGenerations(temp.store, grant);
  const copy = parseBackup(serializeBackup(await captureState(temp.store, MADE)));
  using other = tempStore();
  await restoreState(other.store, copy);
  expect(await grantsOf(other.store)).toEqual([inDoubt, { ...withoutRefreshToken, doubt }]);
});

describe('restoring a backup', () => {
  test('a backup restored on an empty hub makes it the same hub, with all grants in doubt and sealed with its own key', async () => {
    using temp = tempStore();
    await temp.store.settings.save({ hub_id: 'a young hub' });
    expect(await restoreState(temp.store, await sampleBackupState())).toEqual({
      restored: ['wallbox', 'heater'],
      kept: [],
    });
    expect(await temp.store.settings.get('hub_id')).toBe('the hub');
    expect(await temp.store.settings.get('ca_key')).toBe('the key of the CA');
    expect(await temp.store.registry.appliances()).toEqual([HEATER, WALLBOX]);
    expect(await grantsOf(temp.store)).toEqual([
      { ...wallboxGrant, doubt },
      { ...heaterGrant, doubt },
    ]);
    expect(readFilesAsText(temp.path)).not.toContain('another-refresh-token');
  });

  test.each([
    ['newer than in the backup', 6],
    ['the same as in the backup', 5],
  ])('restoring a backup keeps and reports a grant whose generation on the hub is %s', async (_, generation) => {
    using temp = tempStore();
    const rotated = { ...WALLBOX, credentials: { kind: 'secret', hash: 'rotated since' } } as const;
    await addAppliance(temp.store, rotated);
    const own = sampleGrant({ connection: WALLBOX.id, generation, refreshToken: new Secret('of this hub') });
    await saveGenerations(temp.store, own);
    expect(await restoreState(temp.store, await sampleBackupState())).toEqual({
      restored: ['heater'],
      kept: ['wallbox'],
    });
    expect(await grantsOf(temp.store)).toEqual([own, { ...heaterGrant, doubt }]);
    expect((await temp.store.registry.appliances())[1]).toEqual(rotated);
  });

  test('restoring a backup replaces an older grant, and a late refresh response for the old one is discarded', async () => {
    using temp = tempStore();
    await addAppliance(temp.store, WALLBOX);
    await saveGenerations(temp.store, sampleGrant({ connection: WALLBOX.id, generation: 3 }));
    await restoreState(temp.store, await sampleBackupState());
    expect(await generationOf(temp.store, WALLBOX.id)).toBe(5);
    expect(await temp.store.grants.replace(sampleGrant({ connection: WALLBOX.id, generation: 4 }))).toBe(false);
  });

  test('restoring a backup brings back a deleted grant, with a generation that no late response matches', async () => {
    using temp = tempStore();
    await addAppliance(temp.store, WALLBOX);
    await saveGenerations(temp.store, sampleGrant({ connection: WALLBOX.id, generation: 7 }));
    await temp.store.grants.forget(WALLBOX.id, 7);
    expect(await restoreState(temp.store, await sampleBackupState())).toMatchObject({
      restored: ['wallbox', 'heater'],
    });
    expect(await temp.store.grants.get(WALLBOX.id)).toMatchObject({ grant: { generation: 9, doubt } });
  });

  test('restoring a backup leaves appliances unchanged that it does not contain', async () => {
    using temp = tempStore();
    const id = '44444444-4444-4444-8444-444444444444';
    const own = { ...HEATER, id, connection: id, clientId: id, name: 'sauna' };
    await addAppliance(temp.store, own);
    await saveGenerations(temp.store, sampleGrant({ connection: own.id }));
    await restoreState(temp.store, await sampleBackupState());
    expect((await temp.store.registry.appliances()).map(({ name }) => name)).toEqual(['heater', 'sauna', 'wallbox']);
    expect(await grantsOf(temp.store)).toHaveLength(3);
  });

  test('restoring a backup takes over the name of an appliance without a grant, and fails if it has one', async () => {
    using temp = tempStore();
    const id = '44444444-4444-4444-8444-444444444444';
    const own = { ...WALLBOX, id, connection: id, clientId: 'another' };
    await addAppliance(temp.store, own);
    const copy = await sampleBackupState();
    await restoreState(temp.store, copy);
    expect(await temp.store.registry.appliances()).toEqual([HEATER, WALLBOX]);

    using other = tempStore();
    await addAppliance(other.store, own);
    await saveGenerations(other.store, sampleGrant({ connection: own.id }));
    await expect(restoreState(other.store, copy)).rejects.toMatchObject({
      code: 'appliance_exists',
      message: expect.stringMatching(/remove wallbox.*nothing was changed/),
    });
    expect(await other.store.registry.appliances()).toEqual([own]);
    expect(await other.store.settings.get('hub_id')).toBeNull();
  });

  test('restoring a backup changes everything or nothing', async () => {
    using temp = tempStore();
    const copy = await sampleBackupState();
    const twice = { ...copy, appliances: [...copy.appliances, { ...WALLBOX, id: HEATER.id }] };
    await expect(restoreState(temp.store, twice)).rejects.toBeInstanceOf(Failure);
    expect(await temp.store.registry.appliances()).toEqual([]);
    expect(await temp.store.settings.get('hub_id')).toBeNull();
  });
});

describe('unusable backup', () => {
  const sealed = sampleBackupState().then((copy) => sealQuickly(serializeBackup(copy)));

  /** Seals like the hub, with a thousandth of the key derivation rounds: a backup names its number of rounds. */
  function sealQuickly(text: string): Promise<string> {
    return new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'PBES2-HS512+A256KW', enc: 'A256GCM', typ: 'latchkey-copy' })
      .setKeyManagementParameters({ p2c: 600 })
      .encrypt(Buffer.from(PASSPHRASE.reveal()));
  }

  async function refused(copy: string, passphrase = PASSPHRASE): Promise<string> {
    using temp = tempStore();
    const error: unknown = await restoreBackup(temp.store, copy, passphrase).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'copy_unusable' });
    expect(await temp.store.registry.appliances()).toEqual([]);
    const message = messageOf(error);
    expect(message).not.toMatch(/\n|refresh-token|correct horse/);
    return message;
  }

  test('a backup is refused if the passphrase is wrong', async () => {
    expect(await refused(await sealed, new Secret('correct horse battery stable'))).toMatch(/passphrase is wrong/);
  });

  test('a backup with any changed byte is refused', async () => {
    const whole = await sealed;
    for (const length of [30, 150, whole.length >> 1, whole.length - 3]) {
      const changed = whole.slice(0, length) + (whole[length] === 'A' ? 'B' : 'A') + whole.slice(length + 1);
      expect(await refused(changed)).toMatch(/damaged|not a backup/);
    }
    expect(await refused(whole.slice(0, -100))).toMatch(/damaged/);
  });

  test.each([[''], ['not a copy'], ['a.b.c.d.e'], ['eyJhbGciOiJkaXIifQ....']])(
    'the text %j is refused as a backup',
    async (copy) => {
      expect(await refused(copy)).toMatch(/not a backup made by "latchkey backup"/);
    },
  );

  test('a backup of another format is refused', async () => {
    expect(await refused(await sealQuickly('{"format":2}'))).toMatch(/format 2, and .* only format 1/);
  });

  test.each([['no JSON'], ['{}'], ['{"format":1}']])('a backup whose content is %s is refused', async (text) => {
    expect(await refused(await sealQuickly(text))).toMatch(/its content is (invalid|not JSON)/);
  });

  test('a backup that asks for too many rounds of key derivation is refused', async () => {
    const header = {
      alg: 'PBES2-HS512+A256KW',
      enc: 'A256GCM',
      typ: 'latchkey-copy',
      p2c: 2_000_000_000,
      p2s: 'c2FsdA',
    };
    const encoded = Buffer.from(JSON.stringify(header)).toString('base64url');
    expect(await refused(`${encoded}.AAAA.AAAA.AAAA.AAAA`)).toMatch(/iterations of key derivation/);
  });
});

test('a backup of a hub with a damaged grant contains the other grants', async () => {
  using folder = memoryStateFolder();
  {
    using store = open(folder.path);
    await fill(store);
  }
  runSql(folder.path, `UPDATE grants SET sealed = 'damaged' WHERE connection = '${HEATER.id}'`);
  using store = open(folder.path);
  const backup = await createBackup(store, PASSPHRASE, MADE);
  expect(backup).toMatchObject({ made: '2031-05-05T06:00:00Z', appliances: 2, grants: 1 });
});

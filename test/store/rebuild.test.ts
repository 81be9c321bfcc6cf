import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PAGE_SESSIONS_SETTING } from '../../src/core/backup-contents.ts';
import { writeSnapshot } from '../../src/store/sqlite/snapshot.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { corruptTable, runSql } from './corrupt-store.ts';
import { addAppliance, FRIDGE, HEATER, open, openAsHub, sampleSession, WALLBOX } from './test-store.ts';

const wallboxGrant = sampleGrant({
  connection: WALLBOX.id,
  requestedScope: 'Monitoring',
  accessTokenRejectedAt: instantAt(7),
});
const heaterGrant = sampleGrant({ connection: HEATER.id, accessTokenRejectedAt: instantAt(8) });
const DECLARED = { ...HEATER, origin: 'declared' } as const;
const SESSIONS = [sampleSession(WALLBOX, 'one'), sampleSession(DECLARED, 'two'), sampleSession(WALLBOX, 'three')];
const INVITE = { hash: 'an-invite', name: null, scope: null, portal: 'home', begun: instantAt(3), lifetime: 1000 };

/** A folder with a store, its snapshot, and a session and an invite that are newer than the snapshot. */
async function createStoreWithSnapshot() {
  const folder = memoryStateFolder();
  using store = open(folder.path);
  for (const appliance of [WALLBOX, DECLARED, FRIDGE]) await addAppliance(store, appliance);
  for (const grant of [wallboxGrant, heaterGrant]) await store.grants.replace(grant);
  await store.settings.save({ hub_id: 'the hub' });
  await store.settings.save({ setup_code: 'BCDF-GHJK-LMNP-QRST' });
  await store.settings.save({ [PAGE_SESSIONS_SETTING]: 'who was signed in' });
  for (const session of SESSIONS) await store.sessions.save(session);
  await store.invites.save({ ...INVITE, hash: 'used up since' });
  await writeSnapshot(store);
  await store.invites.remove('used up since');
  await store.invites.save(INVITE);
  await store.sessions.save(sampleSession(WALLBOX, 'since'));
  return folder;
}

async function readAll(path: string) {
  using store = await openAsHub(path);
  return {
    appliances: await store.registry.appliances(),
    damaged: [...store.registry.damagedAppliances],
    grants: (await store.grants.all()).map(({ grant }) => grant),
    sessions: await store.sessions.all(),
    invites: await store.invites.all(),
    recovered: store.recoverySummary,
  };
}

describe('rebuilt store', () => {
  test('a store rebuilt from its snapshot has the appliances and their sessions, and no invites', async () => {
    using folder = await createStoreWithSnapshot();
    rmSync(join(folder.path, 'latchkey.db'));
    expect(await readAll(folder.path)).toMatchObject({
      appliances: [FRIDGE, DECLARED, WALLBOX],
      damaged: [],
      grants: [wallboxGrant, heaterGrant].map((grant) => ({ ...grant, doubt: { kind: 'copy' } })),
      sessions: SESSIONS,
      invites: [],
      recovered: expect.stringContaining('snapshot'),
    });
  });

  test('a rebuilt store signs in no browser, and reports the recovery once', async () => {
    using folder = await createStoreWithSnapshot();
    const settings = async () => {
      using store = await openAsHub(folder.path);
      return [
        await store.settings.get(PAGE_SESSIONS_SETTING),
        await store.settings.get('setup_code'),
        store.recoverySummary !== null,
      ];
    };
    for (const damage of [
      () => rmSync(join(folder.path, 'latchkey.db')),
      () => corruptTable(folder.path, 'settings'),
    ]) {
      damage();
      const [sessions, code] = await settings();
      expect([sessions, code]).toEqual([null, 'BCDF-GHJK-LMNP-QRST']);
      expect(await settings()).toEqual([null, 'BCDF-GHJK-LMNP-QRST', false]);
    }
  });

  test('a store rebuilt from a damaged database includes what was written after the snapshot', async () => {
    using folder = await createStoreWithSnapshot();
    corruptTable(folder.path, 'settings');
    expect(await readAll(folder.path)).toMatchObject({
      appliances: [FRIDGE, DECLARED, WALLBOX],
      grants: [wallboxGrant, heaterGrant],
      sessions: [...SESSIONS, sampleSession(WALLBOX, 'since')],
      invites: [INVITE],
      recovered: expect.stringContaining('was damaged'),
    });
  });

  test('a rebuilt store takes the sessions of the snapshot if its own cannot be read', async () => {
    using folder = await createStoreWithSnapshot();
    corruptTable(folder.path, 'sessions');
    const found = await readAll(folder.path);
    expect(found).toMatchObject({ grants: [{ doubt: null }, { doubt: null }], sessions: SESSIONS });
    expect(await readAll(folder.path)).toEqual({ ...found, recovered: null });
  });

  test('a rebuilt store does not restore the sessions of an appliance that was unpaired after the snapshot', async () => {
    using folder = await createStoreWithSnapshot();
    {
      using store = await openAsHub(folder.path);
      await store.grants.forget(WALLBOX.id, 1);
      for (const name of ['one', 'three', 'since']) await store.sessions.end(`hash-${name}`);
    }
    corruptTable(folder.path, 'settings');
    expect(await readAll(folder.path)).toMatchObject({ sessions: [sampleSession(DECLARED, 'two')] });
  });

  test('a rebuilt store restores the sessions of an appliance for its connections that are still paired', async () => {
    using folder = memoryStateFolder();
    const hass = { ...WALLBOX, more: [HEATER.id] };
    {
      using store = open(folder.path);
      for (const appliance of [DECLARED, hass]) await addAppliance(store, appliance);
      for (const grant of [wallboxGrant, heaterGrant]) await store.grants.replace(grant);
      for (const { id, name } of [WALLBOX, HEATER])
        await store.sessions.save({ ...sampleSession(hass, name), connection: id });
      await writeSnapshot(store);
      await store.grants.forget(WALLBOX.id, 1);
      await store.sessions.end(`hash-${WALLBOX.name}`);
    }
    corruptTable(folder.path, 'sessions');
    expect((await readAll(folder.path)).sessions.map(({ hash }) => hash)).toEqual([`hash-${HEATER.name}`]);
  });

  test('a rebuilt store does not restore an ended session if only a row is damaged', async () => {
    using folder = await createStoreWithSnapshot();
    {
      using store = await openAsHub(folder.path);
      await store.sessions.end('hash-one');
    }
    runSql(folder.path, `UPDATE grants SET sealed = substr(sealed, 1, 99) || 'AAAA' WHERE connection = '${HEATER.id}'`);
    const { sessions, recovered } = await readAll(folder.path);
    expect(recovered).toContain('was damaged');
    expect(sessions.map(({ hash }) => hash)).toEqual(['hash-two', 'hash-three', 'hash-since']);
  });

  test('a rebuilt store takes an unreadable appliance from the snapshot and leaves the rest as it is', async () => {
    using folder = await createStoreWithSnapshot();
    runSql(folder.path, "UPDATE appliances SET sealed = 'damaged' WHERE name = 'fridge'");
    expect(await readAll(folder.path)).toMatchObject({
      appliances: [FRIDGE, DECLARED, WALLBOX],
      damaged: [],
      sessions: [...SESSIONS, sampleSession(WALLBOX, 'since')],
      invites: [INVITE],
    });
  });
});

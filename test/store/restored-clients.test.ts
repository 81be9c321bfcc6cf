import { describe, expect, test } from 'vitest';
import type { BackupContents } from '../../src/core/backup-contents.ts';
import { Secret } from '../../src/core/secret.ts';
import { createBackup, restoreBackup, restoreState } from '../../src/store/backup/backup.ts';
import { parseBackup, serializeBackup } from '../../src/store/backup/backup-file.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { addAppliance, FRIDGE, HEATER, open, ownConnection, sampleSession, WALLBOX } from './test-store.ts';

const MADE = Date.UTC(2031, 4, 5, 6);
const doubt = { kind: 'copy', lostAt: { boot: '', uptime: 0, wall: MADE }, sends: 0 } as const;
const DECLARED = {
  ...HEATER,
  origin: 'declared',
  clientId: 'heater-of-the-maker',
  credentials: { kind: 'none' },
} as const;
const wallboxGrant = sampleGrant({
  connection: WALLBOX.id,
  generation: 2,
  requestedScope: 'Monitoring',
  issuer: { origin: 'https://portal.example', clientId: 'a-client', name: 'home' },
  accessTokenRejectedAt: instantAt(7),
});
const heaterGrant = sampleGrant({ connection: DECLARED.id, requestedScope: null });
const SESSIONS = [sampleSession(WALLBOX, 'one'), sampleSession(DECLARED, 'two'), sampleSession(WALLBOX, 'three')];
const COPY: BackupContents = {
  made: MADE,
  settings: new Map([['hub_id', 'the hub']]),
  connections: [WALLBOX, DECLARED, FRIDGE].map(ownConnection),
  appliances: [WALLBOX, DECLARED, FRIDGE],
  grants: [wallboxGrant, heaterGrant],
  sessions: SESSIONS,
};
const OTHER_ID = '44444444-4444-4444-8444-444444444444';

test('a backup restores keys, declared and waiting appliances, token rejections and sessions, and no invite', async () => {
  using first = memoryStateFolder();
  using second = memoryStateFolder();
  const passphrase = new Secret('correct horse battery staple');
  let copy: string;
  {
    using store = open(first.path);
    for (const appliance of COPY.appliances) await addAppliance(store, appliance);
    await store.grants.replace({ ...wallboxGrant, generation: 1 });
    for (const grant of COPY.grants) await store.grants.replace(grant);
    for (const session of SESSIONS) await store.sessions.save(session);
    await store.invites.save({
      hash: 'an-invite',
      name: null,
      scope: null,
      portal: 'home',
      begun: instantAt(3),
      lifetime: 9,
    });
    ({ copy } = await createBackup(store, passphrase, MADE));
  }
  using store = open(second.path);
  await restoreBackup(store, copy, passphrase);
  expect(await store.registry.appliances()).toEqual([FRIDGE, DECLARED, WALLBOX]);
  expect((await store.grants.all()).map(({ grant }) => grant)).toEqual([
    { ...wallboxGrant, doubt },
    { ...heaterGrant, doubt },
  ]);
  expect(await store.sessions.all()).toEqual(SESSIONS);
  expect(await store.invites.all()).toEqual([]);
});

test.each([
  ['an invalid client_id', { clientId: 'a b' }],
  ['a private key', { credentials: { kind: 'keys', keys: [{ kty: 'EC', d: 'secret' }] } }],
  ['no key', { credentials: { kind: 'keys', keys: [] } }],
])('a backup that contains an appliance with %s is refused', (_, changes) => {
  const document = JSON.parse(serializeBackup(COPY));
  Object.assign(document.appliances[0], changes);
  expect(() => parseBackup(JSON.stringify(document))).toThrow(expect.objectContaining({ code: 'copy_unusable' }));
});

describe('restoring clients from a backup', () => {
  test('restoring a backup takes over the client_id of an appliance without a grant, and fails if it has one', async () => {
    using folder = memoryStateFolder();
    const own = { ...DECLARED, id: OTHER_ID, connection: OTHER_ID, name: 'heating' };
    {
      using store = open(folder.path);
      await addAppliance(store, own);
      await restoreState(store, COPY);
      expect(await store.registry.appliances()).toEqual([FRIDGE, DECLARED, WALLBOX]);
    }
    using other = memoryStateFolder();
    using store = open(other.path);
    await addAppliance(store, own);
    await store.grants.replace(sampleGrant({ connection: OTHER_ID }));
    await expect(restoreState(store, COPY)).rejects.toMatchObject({
      code: 'appliance_exists',
      message: expect.stringMatching(
        /client_id \(heater-of-the-maker\).*appliance remove heating.*nothing was changed/,
      ),
    });
    expect(await store.registry.appliances()).toEqual([own]);
  });
});

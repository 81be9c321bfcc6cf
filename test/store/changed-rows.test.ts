import { describe, expect, test } from 'vitest';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { applianceRowIdentity } from '../../src/store/rows/registry-rows.ts';
import { SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { runSql } from './corrupt-store.ts';
import { addAppliance, HEATER, open, openAsHub, sampleSession, WALLBOX } from './test-store.ts';

const secretOf = (name: string): Appliance['credentials'] => ({ kind: 'secret', hash: `hash-of-${name}` });
const OURS = { ...WALLBOX, credentials: secretOf('wallbox') };
const THEIRS = { ...HEATER, credentials: secretOf('heater') };
const INVITE = {
  hash: 'an-invite',
  name: null,
  scope: null,
  portal: 'home',
  begun: sampleSession(OURS, 'one').begun,
  lifetime: 9,
};
const pairing = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });

/** Fills a store with two appliances that each have a grant, a session and a secret, an invite and an open pairing. */
async function fillStore(path: string) {
  using store = open(path);
  for (const appliance of [OURS, THEIRS]) {
    await addAppliance(store, appliance);
    await store.grants.replace(sampleGrant({ connection: appliance.id }));
    await store.sessions.save(sampleSession(appliance, appliance.name));
  }
  await store.pairings.save(pairing);
  await store.invites.save(INVITE);
  await store.settings.save({ hub_id: 'the hub' });
}

async function readAll(path: string) {
  using store = await openAsHub(path);
  const appliances = await store.registry.appliances();
  return {
    credentials: Object.fromEntries(appliances.map(({ id, credentials }) => [id, credentials])),
    damaged: [...store.registry.damagedAppliances].toSorted(),
    sessions: (await store.sessions.all()).map(({ hash, appliance }) => [hash, appliance]),
    refused: [...store.sessions.rejected],
    invites: (await store.invites.all()).map(({ hash }) => hash),
    refusedInvites: store.invites.rejected.size > 0,
    pairings: await store.pairings.all(),
    grants: (await store.grants.all()).length,
    recovered: store.recoverySummary,
  };
}

/** A row that an attacker sealed with another key. */
const MINE = jweSealing(new Uint8Array(STORE_KEY_BYTES)).seal(
  applianceRowIdentity({ ...OURS, client_id: OURS.clientId }),
  JSON.stringify({ ...OURS, credentials: secretOf('mine') }),
);
const NONE = { kind: 'none', damaged: true };
const swap = (columns: string) => `PRAGMA foreign_keys = OFF;
  CREATE TEMP TABLE changed AS SELECT * FROM appliances;
  UPDATE changed SET (${columns}) = (SELECT ${columns} FROM appliances WHERE appliances.id <> changed.id);
  DELETE FROM appliances;
  INSERT INTO appliances SELECT * FROM changed;`;

describe('changes to the database without the store key', () => {
  test.each([
    ['swaps the sealed columns of two appliances', swap('sealed')],
    ['swaps two client_ids', swap('client_id')],
  ])('the store drops the credentials of both appliances if somebody without the key %s', async (_, attack) => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    runSql(folder.path, attack);
    expect(await readAll(folder.path)).toMatchObject({
      credentials: { [OURS.id]: NONE, [THEIRS.id]: NONE },
      damaged: [OURS.id, THEIRS.id],
      grants: 2,
    });
  });

  test.each([
    ['seals a secret with another key', `UPDATE appliances SET sealed = '${MINE}' WHERE name = 'wallbox'`],
    [
      'lets it use the connection of another one',
      `UPDATE appliances SET connection = '${THEIRS.id}' WHERE name = 'wallbox'`,
    ],
    ['empties its sealed column', "UPDATE appliances SET sealed = '' WHERE name = 'wallbox'"],
  ])('the store drops the credentials of only that appliance if somebody without the key %s', async (_, attack) => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    runSql(folder.path, attack);
    expect(await readAll(folder.path)).toMatchObject({
      credentials: { [OURS.id]: NONE, [THEIRS.id]: THEIRS.credentials },
      damaged: [OURS.id],
      recovered: null,
    });
  });

  test('an appliance row that is added or replaced without the store key has no credentials', async () => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    const unknownId = '99999999-9999-4999-8999-999999999999';
    const copyRow = (id: string, name: string) =>
      `INSERT INTO appliances (id, name, client_id, connection, sealed)
       SELECT '${id}', '${name}', '${name}', connection, sealed FROM appliances WHERE name = 'heater'`;
    runSql(
      folder.path,
      `${copyRow(unknownId, 'stranger')}; DELETE FROM appliances WHERE name = 'wallbox'; ${copyRow(OURS.id, 'wallbox')}`,
    );
    expect(await readAll(folder.path)).toMatchObject({
      credentials: { [unknownId]: NONE, [OURS.id]: NONE, [THEIRS.id]: THEIRS.credentials },
    });
  });

  test('sessions, invites and pairings that are added without the store key are dropped and reported once', async () => {
    using folder = memoryStateFolder();
    await fillStore(folder.path);
    runSql(
      folder.path,
      `UPDATE sessions SET appliance = '${OURS.id}' WHERE hash = 'hash-heater';
       INSERT INTO invites (hash, sealed) SELECT 'mine', sealed FROM invites;
       UPDATE pairings SET connection = '${THEIRS.id}'`,
    );
    expect(await readAll(folder.path)).toMatchObject({
      sessions: [['hash-wallbox', OURS.id]],
      refused: [OURS.id],
      invites: ['an-invite'],
      refusedInvites: true,
      pairings: [],
    });
    // The rejected rows are deleted, so they are reported once.
    expect(await readAll(folder.path)).toMatchObject({ refused: [], refusedInvites: false });
  });
});

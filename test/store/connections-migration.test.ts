import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { DECLARED, FORMER_PAIRING, HISTORY_ENTRY, writeFormerStore } from './former-store.ts';
import { FRIDGE, openAsHub, ownConnection, sampleSession, WALLBOX } from './test-store.ts';

const WHOLE = {
  hub: 'the hub',
  connections: [FRIDGE, DECLARED, WALLBOX].map(ownConnection),
  appliances: [FRIDGE, DECLARED, WALLBOX],
  grants: [sampleGrant({ connection: WALLBOX.id }), sampleGrant({ connection: DECLARED.id })],
  pairings: [FORMER_PAIRING],
  sessions: [WALLBOX, DECLARED].map((appliance) => sampleSession(appliance, appliance.name)),
  invites: ['an-invite'],
  history: [HISTORY_ENTRY],
  damaged: [[], []],
  recovered: null,
};

async function start(path: string) {
  using store = await openAsHub(path);
  return {
    hub: await store.setting('hub_id'),
    connections: await store.connections(),
    appliances: await store.appliances(),
    grants: (await store.grants()).map(({ grant }) => grant),
    pairings: await store.pairings(),
    sessions: await store.sessions(),
    invites: (await store.invites()).map(({ hash }) => hash),
    history: await store.history(WALLBOX.id),
    damaged: [[...store.damagedAppliances], [...store.damagedGrants]],
    recovered: store.recoverySummary,
  };
}

test('a store of schema 1 is migrated with all its content, and each appliance has a connection of its own', async () => {
  using folder = memoryStateFolder();
  writeFormerStore(folder.path);
  expect(readFileSync(join(folder.path, 'latchkey.db-wal')).length).toBeGreaterThan(0);
  expect(await start(folder.path)).toEqual(WHOLE);
  expect(await start(folder.path)).toEqual(WHOLE);
  const database = new Database(join(folder.path, 'latchkey.db'));
  const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();
  database.close();
  const clients = ['appliances', 'connections', 'grants', 'history', 'invites', 'pairings', 'sessions'];
  expect(tables).toEqual([...clients, 'settings', 'usage']);
});

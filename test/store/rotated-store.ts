import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Secret } from '../../src/core/secret.ts';
import { jweSealing } from '../../src/store/keys/sealing.ts';
import { type KeyRotation, openStoreWithKeys } from '../../src/store/sqlite/key-rotation.ts';
import { writeSnapshot } from '../../src/store/sqlite/snapshot.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { systemRandom } from '../../src/system/random.ts';
import { SAMPLE_LINK, sampleGrant, samplePairing } from '../core/samples.ts';
import { addAppliance, HEATER, ownConnection, sampleSession, WALLBOX } from './test-store.ts';

export const wallboxGrant = sampleGrant({ connection: WALLBOX.id });
export const heaterGrant = sampleGrant({ connection: HEATER.id, refreshToken: new Secret('another-refresh-token') });
export const pairing = samplePairing({ kind: 'waiting', link: SAMPLE_LINK });
const INVITE = {
  hash: 'an-invite',
  name: null,
  scope: null,
  portal: 'home',
  begun: wallboxGrant.obtained,
  lifetime: 9,
};

export function open(path: string, credentials?: string): ReturnType<typeof openStoreWithKeys> {
  return openStoreWithKeys(path, credentials, { freshKey: () => systemRandom.token(32), wall: Date.now });
}

/** Fills a state directory: a store with at least one row of every kind, and a snapshot. */
export async function fillDirectory(path: string, credentials?: string): Promise<void> {
  const { store } = await open(path, credentials);
  using _open = store;
  for (const appliance of [WALLBOX, HEATER]) {
    await addAppliance(store, appliance);
    await store.sessions.save(sampleSession(appliance, appliance.name));
  }
  for (const grant of [wallboxGrant, heaterGrant]) await store.grants.replace(grant);
  await store.pairings.save(pairing);
  await store.invites.save(INVITE);
  await store.settings.save({ hub_id: 'the hub' });
  await store.settings.save({ whatever: 'others keep here' });
  await writeSnapshot(store);
}

export async function contentOf(store: SqliteStore) {
  return {
    settings: [await store.settings.get('hub_id'), await store.settings.get('whatever')],
    connections: await store.registry.connections(),
    appliances: await store.registry.appliances(),
    grants: (await store.grants.all()).map(({ grant }) => grant),
    sessions: (await store.sessions.all()).map(({ hash }) => hash),
    invites: (await store.invites.all()).map(({ hash }) => hash),
    pairings: await store.pairings.all(),
    damaged: [...store.registry.damagedAppliances],
    recovered: store.recoverySummary,
    unwritable: store.writeProblem,
  };
}

export const WHOLE = {
  settings: ['the hub', 'others keep here'],
  connections: [HEATER, WALLBOX].map(ownConnection),
  appliances: [HEATER, WALLBOX],
  grants: [wallboxGrant, heaterGrant],
  sessions: ['hash-wallbox', 'hash-heater'],
  invites: ['an-invite'],
  pairings: [pairing],
  damaged: [],
  recovered: null,
  unwritable: null,
};

/** Starts like a hub. @returns the content of the store */
export async function start(path: string, credentials?: string) {
  const { store, keyRotation } = await open(path, credentials);
  using _open = store;
  await keyRotation.resumeInterrupted(() => writeSnapshot(store));
  return await contentOf(store);
}

export async function rotate(path: string, credentials?: string) {
  const { store, keyRotation } = await open(path, credentials);
  using _open = store;
  return await rotateOpen(store, keyRotation);
}

export const rotateOpen = (store: SqliteStore, keyRotation: KeyRotation) =>
  keyRotation.rotate(() => writeSnapshot(store));

export const keyOf = (path: string) => Buffer.from(readFileSync(join(path, 'store.key'), 'utf8').trim(), 'base64url');

/** How many sealed values in each file of a directory a key opens. */
export function openedCounts(path: string, key: Uint8Array): Record<string, number> {
  const sealing = jweSealing(key);
  const files = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isFile());
  return Object.fromEntries(
    files.flatMap(({ name }) => {
      const text = readFileSync(join(path, name), 'latin1');
      const opened = (text.match(/eyJhbGciOi[\w-]+\.\.[\w-]+\.[\w-]+\.[\w-]{22}/g) ?? []).filter((sealed) => {
        const { row } = JSON.parse(Buffer.from(sealed.split('.')[0] ?? '', 'base64url').toString());
        try {
          return sealing.open(row, sealed) !== '';
        } catch {
          return false;
        }
      });
      return opened.length === 0 ? [] : [[name, opened.length]];
    }),
  );
}

export const SEALED = { 'latchkey.db': expect.any(Number), 'latchkey.db.copy': expect.any(Number) };

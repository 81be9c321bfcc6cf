import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import type { Session } from '../../src/core/appliances/session.ts';
import type { TokenUsage } from '../../src/core/appliances/usage.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { StoredHistoryEntry } from '../../src/core/reports/history.ts';
import type { Store } from '../../src/core/store.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { storeFiles } from '../../src/store/store-files.ts';
import { instantAt } from '../core/samples.ts';

export const KEY = new Uint8Array(STORE_KEY_BYTES).fill(7);

/** Opens a store without the checks of a hub's start. */
export function open(path: string): SqliteStore {
  const files = storeFiles(path);
  const sealing = jweSealing(KEY);
  const reopen = () => ({
    database: openDatabase(files),
    sealing,
    writeProblem: null,
    recoverySummary: null,
  });
  return new SqliteStore(files, reopen(), async () => reopen());
}

/** Opens a store like a hub. */
export function openAsHub(path: string, key: Uint8Array = KEY): Promise<SqliteStore> {
  return openStore(path, jweSealing(key), () => Date.UTC(2031, 4, 5, 6));
}

export const WALLBOX: Appliance = {
  id: '11111111-1111-4111-8111-111111111111',
  clientId: 'wallbox-0815',
  name: 'wallbox',
  title: 'Wallbox',
  connection: '11111111-1111-4111-8111-111111111111',
  credentials: { kind: 'secret', hash: 'a-hash' },
  origin: 'added',
  waiting: null,
  softwareId: null,
};
export const HEATER: Appliance = {
  ...WALLBOX,
  id: '33333333-3333-4333-8333-333333333333',
  clientId: '33333333-3333-4333-8333-333333333333',
  connection: '33333333-3333-4333-8333-333333333333',
  name: 'heater',
  title: 'heater',
};

/** An appliance with its own keys that waits for approval. */
export const FRIDGE: Appliance = {
  id: '55555555-5555-4555-8555-555555555555',
  clientId: 'fridge~1',
  name: 'fridge',
  title: 'Fridge in the pantry',
  connection: '55555555-5555-4555-8555-555555555555',
  credentials: {
    kind: 'keys',
    keys: [
      {
        kty: 'EC',
        crv: 'P-256',
        x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
        y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
      },
      { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo', kid: 'second' },
    ],
  },
  origin: 'registered',
  waiting: { since: instantAt(70), from: '192.168.1.30' },
  softwareId: 'fridge-2',
};

/** The connection that an appliance has for itself, with its id and name. */
export function ownConnection({ connection: id, name, title, origin }: Appliance): Connection {
  const [portal, scope] = id === FRIDGE.id ? ['another', null] : ['home', id === WALLBOX.id ? 'Monitoring' : null];
  return { id, name, title, portal, scope, origin: origin === 'declared' ? origin : 'implicit' };
}

/** Adds an appliance with a connection of its own. */
export function addAppliance(store: Pick<Store, 'registry'>, appliance: Appliance, usedInvite?: string) {
  return store.registry.save({
    addedConnections: [ownConnection(appliance)],
    addedAppliances: [appliance],
    ...(usedInvite === undefined ? {} : { usedInvite }),
  });
}

/** Replaces an appliance. */
export function updateAppliance(store: Pick<Store, 'registry'>, appliance: Appliance) {
  return store.registry.save({ updatedAppliances: [appliance] });
}

/** Removes an appliance with a connection of its own. */
export function removeAppliance(store: Pick<Store, 'registry'>, id: string) {
  return store.registry.save({ removedAppliances: [id], removedConnections: [id] });
}

/** A session of an appliance, with the hash `hash-<name>`. */
export function sampleSession({ id }: Appliance, name: string): Session {
  return { hash: `hash-${name}`, appliance: id, device: `device-${name}`, begun: instantAt(4) };
}

/** The hash of every file in a folder. */
export function hashFiles(path: string): Record<string, string> {
  const hash = (name: string) =>
    createHash('sha256')
      .update(readFileSync(join(path, name)))
      .digest('hex');
  return Object.fromEntries(readdirSync(path).map((name) => [name, hash(name)]));
}

/** The content of all files in a folder, as text. */
export function readFilesAsText(path: string): string {
  return readdirSync(path)
    .map((name) => readFileSync(join(path, name), 'latin1'))
    .join('\n');
}

/** A line of a history that stands for one event. @param time in ms since the epoch */
export function historyLine(
  kind: StoredHistoryEntry['kind'],
  time: number,
  why: StoredHistoryEntry['why'] = null,
): StoredHistoryEntry {
  return { kind, why, first: time, last: time, count: 1 };
}

/** An appliance's usage, and the same after one more token. */
export const USAGE: TokenUsage = {
  last: Date.UTC(2031, 4, 5, 6),
  days: [
    { day: 22_400, count: 3 },
    { day: 22_404, count: 12 },
  ],
};
export const LATER_USAGE: TokenUsage = { last: USAGE.last + 1, days: [{ day: 22_404, count: 13 }] };

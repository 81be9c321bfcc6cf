import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import { jweSealing } from '../../src/store/keys/sealing.ts';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.ts';
import { instantAt, SAMPLE_LINK, samplePairing } from '../core/samples.ts';
import { FRIDGE, HEATER, KEY, ownConnection, sampleSession, WALLBOX } from './test-store.ts';

export const DECLARED = { ...HEATER, origin: 'declared' } as const;
const DEVICE = { codeHash: 'hash-of-the-device-code', userCode: 'WDJB-MJHT' };
/** The open pairing of the wallbox, which an appliance has begun. */
export const FORMER_PAIRING = samplePairing(
  { kind: 'waiting', link: SAMPLE_LINK },
  { device: { appliance: WALLBOX.id, ...DEVICE } },
);
export const HISTORY_ENTRY = { kind: 'paired', why: null, first: 1.95e12, last: 1.95e12, count: 1 } as const;

/**
 * Writes a store of schema 1, in which each appliance has its own portal, scope and grant, as the former code wrote it:
 * a paired wallbox with a session and a device flow, a paired and declared heater, and a fridge that waits for approval.
 * @param path the state directory. Like after a kill, some of the content is only in the WAL.
 */
export function writeFormerStore(path: string): void {
  const database = new Database(join(path, 'latchkey.former'));
  database.pragma('page_size = 1024');
  database.pragma('journal_mode = WAL');
  database.exec(String(MIGRATIONS[0]));
  database.pragma('user_version = 1');
  database.pragma('wal_checkpoint(TRUNCATE)');
  fill(database);
  for (const suffix of ['', '-wal']) {
    copyFileSync(join(path, `latchkey.former${suffix}`), join(path, `latchkey.db${suffix}`));
  }
  database.close();
}

function fill(database: Database.Database): void {
  const sealing = jweSealing(KEY);
  const insert = (table: string, row: Readonly<Record<string, unknown>>, identity?: string, content?: unknown) => {
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    const all = { ...row, ...(identity === undefined ? {} : { sealed: sealing.seal(identity, text) }) };
    const columns = Object.keys(all);
    database
      .prepare(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`)
      .run(...Object.values(all));
  };
  insert('settings', { name: 'hub_id' }, 'settings/hub_id', 'the hub');
  for (const appliance of [WALLBOX, DECLARED, FRIDGE]) {
    const { id, name, clientId, connection: _, ...rest } = appliance as Appliance;
    const { portal, scope } = ownConnection(appliance);
    const identity = JSON.stringify(['appliances', id, name, clientId, portal, scope]);
    insert('appliances', { id, name, client_id: clientId, portal, scope }, identity, rest);
  }
  for (const appliance of [WALLBOX.id, DECLARED.id]) {
    insert('grants', { appliance, generation: 1, attempt: 'null' }, `grants/${appliance}/1`, {
      accessToken: 'the-access-token',
      refreshToken: 'the-refresh-token',
      scope: 'Monitoring RemoteControl',
      lifetime: 3_600_000,
      obtained: instantAt(0),
      portalTime: Date.UTC(2031, 4, 5, 6),
      asked: null,
      givenBy: { origin: 'https://portal.example', clientId: 'a-client', name: 'home' },
    });
  }
  const { id, connection, lastFailure, device: _, ...rest } = FORMER_PAIRING;
  const pairing = { ...rest, setback: lastFailure, device: DEVICE };
  insert('pairings', { id, appliance: connection, step: 'waiting' }, `pairings/${id}/${connection}`, pairing);
  for (const [index, appliance] of [WALLBOX, DECLARED].entries()) {
    const { hash, appliance: owner, device, begun } = sampleSession(appliance, appliance.name);
    const row = { number: index + 1, hash, appliance: owner, device };
    insert('sessions', row, `sessions/${hash}/${owner}/${device}`, { begun });
  }
  const invite = { name: null, scope: null, portal: 'home', begun: instantAt(3), lifetime: 1000 };
  insert('invites', { hash: 'an-invite' }, 'invites/an-invite', invite);
  insert('history', { appliance: WALLBOX.id, number: 1, ...HISTORY_ENTRY });
}

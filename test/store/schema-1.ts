import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Grant } from '../../src/core/grant.ts';
import type { Pairing } from '../../src/core/pairing.ts';
import { jweSealing, type Sealing } from '../../src/store/sealing.ts';
import { KEY } from './opened.ts';

const SCHEMA = `
  CREATE TABLE settings (name TEXT PRIMARY KEY, sealed TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE appliances (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, scope TEXT, portal TEXT NOT NULL,
    secret_hash TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE grants (appliance TEXT PRIMARY KEY REFERENCES appliances (id) ON DELETE CASCADE,
    generation INTEGER NOT NULL, tokens TEXT, attributes TEXT, attempt TEXT, doubt TEXT, refused TEXT) STRICT, WITHOUT ROWID;
  CREATE TABLE pairings (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
    appliance TEXT NOT NULL REFERENCES appliances (id) ON DELETE CASCADE,
    sealed TEXT NOT NULL, attributes TEXT NOT NULL, step TEXT NOT NULL) STRICT;
  CREATE INDEX pairings_of_appliance ON pairings (appliance, number);
  PRAGMA user_version = 1;`;

/** What a store of schema 1 holds; an appliance was known by its id, and proved itself by a secret. */
export interface OldState {
  readonly appliances: readonly { readonly id: string; readonly name: string; readonly hash: string }[];
  readonly grants: readonly Grant[];
  /** Ids of appliances whose grant was forgotten, as generation 4. */
  readonly forgotten: readonly string[];
  readonly pairings: readonly Pairing[];
}

/** Writes a store as the first Latchkey did. @param file its name */
export async function writeSchema1(path: string, state: OldState, file = 'latchkey.db'): Promise<void> {
  const { seal } = sealingBefore();
  const database = new Database(join(path, file));
  const insert = (table: string, ...values: unknown[]) =>
    database.prepare(`INSERT INTO ${table} VALUES (${values.map(() => '?').join(', ')})`).run(...values);
  database.pragma('journal_mode = WAL');
  database.exec(SCHEMA);
  insert('settings', 'hub_id', seal('settings/hub_id', 'the hub'));
  for (const { id, name, hash } of state.appliances) insert('appliances', id, name, 'Monitoring', 'home', hash);
  for (const { appliance, generation, accessToken, refreshToken, doubt, refused, ...rest } of state.grants) {
    const attributes = {
      scope: rest.scope,
      lifetime: rest.lifetime,
      obtained: rest.obtained,
      portalTime: rest.portalTime,
    };
    const secrets = { accessToken: accessToken.reveal(), refreshToken: refreshToken.reveal(), attributes };
    const tokens = seal(`grants/${appliance}/${generation}`, JSON.stringify(secrets));
    const attempt = JSON.stringify({ token: 'hash-of-the-refresh-token', at: rest.obtained });
    insert('grants', appliance, generation, tokens, null, attempt, json(doubt), json(refused));
  }
  for (const id of state.forgotten) insert('grants', id, 4, null, null, null, null, null);
  for (const [index, pairing] of state.pairings.entries()) {
    const { id, appliance, portal, scope, begun, lifetime, spentCodes, setback } = pairing;
    const { link, ...step } = { link: null, ...pairing.step };
    const sealed = seal(`pairings/${id}`, JSON.stringify({ nonce: pairing.nonce, link }));
    const attributes = JSON.stringify({ portal, scope, begun, lifetime, spentCodes, setback });
    insert('pairings', index + 1, id, appliance, sealed, attributes, JSON.stringify(step));
  }
  database.close();
}

/** As stores were sealed before their rows were signed. */
function sealingBefore(): Sealing {
  const { before } = jweSealing(KEY);
  if (before === null) throw new Error('there was no other sealing before');
  return before;
}

function json(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

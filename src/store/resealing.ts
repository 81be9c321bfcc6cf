import type Database from 'better-sqlite3';
import { Failure } from '../core/failure.ts';
import { salvage } from './salvage.ts';
import type { Sealing } from './sealing.ts';

/**
 * Seals and signs every row anew. What was changed by somebody else, or can't be opened, stays so. To be called in a
 * transaction.
 * @param path names the database in failures
 * @throws Failure `store_unreadable` where the database is damaged
 */
export function reseal(database: Database.Database, path: string, from: Sealing, to: Sealing): void {
  const content = salvage(database, [from], to);
  if (content.damage !== null) {
    throw new Failure(
      'store_unreadable',
      `the store ${path} is damaged (${content.damage}): start the hub again first`,
    );
  }
  const set = (table: string, columns: string, key: string) => {
    const statement = database.prepare(`UPDATE ${table} SET ${columns} WHERE ${key} = ?`);
    return (...values: unknown[]) => statement.run(...values);
  };
  const setting = set('settings', 'sealed = ?', 'name');
  for (const { name, sealed } of content.settings.values()) setting(sealed, name);
  const grant = set('grants', 'tokens = ?', 'appliance');
  for (const { appliance, tokens } of content.grants.values()) if (tokens !== null) grant(tokens, appliance);
  const pairing = set('pairings', 'sealed = ?, mac = ?', 'id');
  for (const { id, sealed, mac } of content.pairings) pairing(sealed, mac, id);
  const appliance = set('appliances', 'mac = ?', 'id');
  for (const { id, mac } of content.appliances) appliance(mac, id);
  const session = set('sessions', 'mac = ?', 'hash');
  for (const { hash, mac } of content.sessions) session(mac, hash);
  const invite = set('invites', 'mac = ?', 'hash');
  for (const { hash, mac } of content.invites) invite(mac, hash);
}

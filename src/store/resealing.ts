import type Database from 'better-sqlite3';
import { migrate } from './migrations.ts';
import type { Salvage } from './salvage.ts';

/**
 * Brings a database to the newest schema, and has it sealed and signed as what was read of it: all of it or nothing.
 * @param content what was read of it, and has not changed since; null where nothing was
 */
export function bringUpToDate(database: Database.Database, content: Salvage | null): void {
  const bring = () => {
    migrate(database);
    if (content?.isDated) writeSealed(database, content);
  };
  database.transaction(bring).immediate();
}

/** Writes what is sealed, and the rows' codes. To be called in a transaction: the rows are as they were read. */
export function writeSealed(database: Database.Database, content: Salvage): void {
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

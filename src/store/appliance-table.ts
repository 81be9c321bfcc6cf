import type { Appliance } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Invite } from '../core/registration.ts';
import {
  APPLIANCE_COLUMNS,
  APPLIANCE_PLACES,
  type ApplianceRow,
  applianceValues,
  type InviteRow,
  readAppliance,
  readInvite,
  unreadableAppliance,
} from './appliance-rows.ts';
import type { Sql } from './sql.ts';

/** The appliances, and the invites of those that are still to come. */
export class ApplianceTable {
  readonly #sql: Sql;
  readonly #damaged = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances that can't prove who they are, because their rows can't be read. */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  all(): Appliance[] {
    this.#damaged.clear();
    return this.#sql
      .all<ApplianceRow>(`SELECT ${APPLIANCE_COLUMNS} FROM appliances ORDER BY name`)
      .map((row) => this.#read(row));
  }

  /** @param invite the hash of the invite that is used up with it */
  add(appliance: Appliance, invite: string | undefined): boolean {
    if (invite === undefined) return this.insert(appliance);
    return this.#sql.transaction(() => {
      const there = this.#sql.get('SELECT hash FROM invites WHERE hash = ?', invite) !== undefined;
      if (!there || !this.insert(appliance)) return false;
      this.removeInvite(invite);
      return true;
    });
  }

  /** @returns false where its id, its name or its client_id is taken */
  insert(appliance: Appliance): boolean {
    return this.#sql.run(
      `INSERT INTO appliances (${APPLIANCE_COLUMNS}) VALUES (${APPLIANCE_PLACES}) ON CONFLICT DO NOTHING`,
      ...applianceValues(appliance),
    );
  }

  change(appliance: Appliance): boolean {
    const changed = this.#sql.run(
      `UPDATE OR IGNORE appliances SET (${APPLIANCE_COLUMNS}) = (${APPLIANCE_PLACES}) WHERE id = ?`,
      ...applianceValues(appliance),
      appliance.id,
    );
    if (changed) this.#damaged.delete(appliance.id);
    return changed;
  }

  remove(id: string): void {
    this.#sql.run('DELETE FROM appliances WHERE id = ?', id);
    this.#damaged.delete(id);
  }

  invites(): Invite[] {
    return this.#sql.all<InviteRow>('SELECT * FROM invites').flatMap((row) => readInviteOrNone(row));
  }

  saveInvite({ hash, name, scope, portal, begun, lifetime }: Invite): void {
    this.#sql.run(
      'INSERT OR REPLACE INTO invites (hash, name, scope, portal, begun, lifetime) VALUES (?, ?, ?, ?, ?, ?)',
      ...[hash, name, scope, portal, JSON.stringify(begun), lifetime],
    );
  }

  removeInvite(hash: string): void {
    this.#sql.run('DELETE FROM invites WHERE hash = ?', hash);
  }

  #read(row: ApplianceRow): Appliance {
    try {
      return readAppliance(row);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      this.#damaged.add(row.id);
      return unreadableAppliance(row);
    }
  }
}

/** An invite that can't be read is none: another is soon made. */
function readInviteOrNone(row: InviteRow): Invite[] {
  try {
    return [readInvite(row)];
  } catch (error) {
    if (error instanceof Failure) return [];
    throw error;
  }
}

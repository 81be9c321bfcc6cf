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
import type { Sealing } from './sealing.ts';
import type { Sql } from './sql.ts';

/** The appliances, and the invites of those that are still to come. */
export class ApplianceTable {
  readonly #sql: Sql;
  readonly #sealing: () => Sealing;
  readonly #damaged = new Set<string>();
  #refusedInvites = false;

  constructor(sql: Sql, sealing: () => Sealing) {
    this.#sql = sql;
    this.#sealing = sealing;
  }

  /** Whether an invite was found that the hub has not made, and was forgotten. */
  get refusedInvites(): boolean {
    return this.#refusedInvites;
  }

  /** Ids of the appliances that can't prove who they are, because their rows were changed or can't be read. */
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
      ...applianceValues(appliance, this.#sealing()),
    );
  }

  /** One that was damaged or changed stays unsigned, and so is damaged still: only removing it ends that. */
  change(appliance: Appliance): boolean {
    return this.#sql.run(
      `UPDATE OR IGNORE appliances SET (${APPLIANCE_COLUMNS}) = (${APPLIANCE_PLACES}) WHERE id = ?`,
      ...applianceValues(appliance, this.#damaged.has(appliance.id) ? null : this.#sealing()),
      appliance.id,
    );
  }

  remove(id: string): void {
    this.#sql.run('DELETE FROM appliances WHERE id = ?', id);
    this.#damaged.delete(id);
  }

  invites(): Invite[] {
    return this.#sql.all<InviteRow>('SELECT * FROM invites').flatMap((row) => {
      if (this.#sealing().isSigned('invites', row)) return readInviteOrNone(row);
      this.#refusedInvites = true;
      this.#sql.runIfWritable('DELETE FROM invites WHERE hash = ?', row.hash);
      return [];
    });
  }

  saveInvite({ hash, name, scope, portal, begun, lifetime }: Invite): void {
    const row = { hash, name, scope, portal, begun: JSON.stringify(begun), lifetime };
    this.#sql.run(
      'INSERT OR REPLACE INTO invites (hash, name, scope, portal, begun, lifetime, mac) VALUES (?, ?, ?, ?, ?, ?, ?)',
      ...[...Object.values(row), this.#sealing().sign('invites', row)],
    );
  }

  removeInvite(hash: string): void {
    this.#sql.run('DELETE FROM invites WHERE hash = ?', hash);
  }

  #read(row: ApplianceRow): Appliance {
    try {
      return readAppliance(row, this.#sealing());
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

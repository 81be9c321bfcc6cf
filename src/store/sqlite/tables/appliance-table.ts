import type { Appliance } from '../../../core/appliances/appliance.ts';
import { type ApplianceRow, readAppliance, toApplianceRow, unreadableAppliance } from '../../rows/appliance-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { Sql } from '../sql.ts';

/** The appliances as rows. */
export class ApplianceTable {
  readonly #sql: Sql;
  readonly #damaged = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances that can't authenticate, because their rows were changed or can't be read. */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  all(): Appliance[] {
    this.#damaged.clear();
    return this.#sql.all<ApplianceRow>('SELECT * FROM appliances ORDER BY name').map((row) => this.#read(row));
  }

  /** @returns false if its id, its name or its client_id is taken, or its connection does not exist */
  add(appliance: Appliance): boolean {
    return this.#sql.run(
      `INSERT INTO appliances (id, name, client_id, connection, sealed)
       SELECT ?, ?, ?, ?, ? FROM connections WHERE id = ? ON CONFLICT DO NOTHING`,
      ...this.#columnValues(appliance),
      appliance.connection,
    );
  }

  /**
   * A damaged row stays damaged: only removing the appliance ends that.
   * @returns false if it or its connection does not exist, or its name or its client_id is taken
   */
  update(appliance: Appliance): boolean {
    return this.#sql.run(
      `UPDATE OR IGNORE appliances SET (id, name, client_id, connection, sealed) = (?, ?, ?, ?, ?)
       WHERE id = ? AND EXISTS (SELECT id FROM connections WHERE id = ?)`,
      ...this.#columnValues(appliance, this.#damaged.has(appliance.id) ? '' : undefined),
      appliance.id,
      appliance.connection,
    );
  }

  remove(id: string): void {
    this.#sql.run('DELETE FROM appliances WHERE id = ?', id);
  }

  /** Call this when the transaction that has removed appliances is on disk. */
  clearDamaged(ids: Iterable<string>): void {
    for (const id of ids) this.#damaged.delete(id);
  }

  #columnValues(appliance: Appliance, sealed?: string): string[] {
    const { id, name, client_id, connection, ...row } = toApplianceRow(appliance, this.#sql.sealing);
    return [id, name, client_id, connection, sealed ?? row.sealed];
  }

  #read(row: ApplianceRow): Appliance {
    const appliance = nullIfDamaged(() => readAppliance(row, this.#sql.sealing));
    if (appliance === null) this.#damaged.add(row.id);
    return appliance ?? unreadableAppliance(row);
  }
}

import * as v from 'valibot';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { applianceAttributes, applianceName, nullIfDamaged, parseJson, sealed } from './schemas.ts';

const sealedAttributes = v.object(applianceAttributes);

/** A row of `appliances`. The clear columns keep the appliance known if the rest can't be read. */
export const applianceRow = v.object({
  id: v.pipe(v.string(), v.uuid()),
  name: applianceName,
  client_id: v.string(),
  connection: v.string(),
  sealed,
});

export type ApplianceRow = v.InferOutput<typeof applianceRow>;

/** The identity that a row is sealed with: its names and its connection. */
export function applianceRowIdentity({ id, name, client_id, connection }: Omit<ApplianceRow, 'sealed'>): string {
  return JSON.stringify(['appliances', id, name, client_id, connection]);
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readAppliance(row: ApplianceRow, sealing: Sealing): Appliance {
  const where = applianceRowIdentity(row);
  return { ...cleartextColumns(row), ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** The appliance of an unreadable row: it can't authenticate. */
export function unreadableAppliance(row: ApplianceRow): Appliance {
  const credentials = { kind: 'none', damaged: true } as const;
  return { ...cleartextColumns(row), credentials, origin: 'added', waitingSince: null, softwareId: null };
}

function cleartextColumns({ id, name, client_id, connection }: ApplianceRow) {
  return { id, name, clientId: client_id, connection };
}

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
      ...columnValues(appliance),
      this.#seal(appliance),
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
      ...columnValues(appliance),
      this.#damaged.has(appliance.id) ? '' : this.#seal(appliance),
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

  #seal({ id, name, clientId, connection, ...rest }: Appliance): string {
    const identity = applianceRowIdentity({ id, name, client_id: clientId, connection });
    return this.#sql.sealing.seal(identity, JSON.stringify(rest));
  }

  #read(row: ApplianceRow): Appliance {
    const appliance = nullIfDamaged(() => readAppliance(row, this.#sql.sealing));
    if (appliance === null) this.#damaged.add(row.id);
    return appliance ?? unreadableAppliance(row);
  }
}

/** All columns but the sealed one. */
function columnValues({ id, name, clientId, connection }: Appliance): string[] {
  return [id, name, clientId, connection];
}

import * as v from 'valibot';
import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { applianceAttributes, applianceName, nullIfDamaged, parseJson, scope, sealed } from './schemas.ts';

const sealedAttributes = v.object(applianceAttributes);

/** A row of `appliances`. The clear columns keep the appliance and its grant usable if the rest can't be read. */
export const applianceRow = v.object({
  id: v.pipe(v.string(), v.uuid()),
  name: applianceName,
  client_id: v.string(),
  portal: v.string(),
  scope,
  sealed,
});

export type ApplianceRow = v.InferOutput<typeof applianceRow>;

/** The identity that a row is sealed with: its names, portal and scope. */
export function applianceRowIdentity({ id, name, client_id, portal, scope }: Omit<ApplianceRow, 'sealed'>): string {
  return JSON.stringify(['appliances', id, name, client_id, portal, scope]);
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readAppliance(row: ApplianceRow, sealing: Sealing): Appliance {
  const where = applianceRowIdentity(row);
  return { ...cleartextColumns(row), ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** The appliance of an unreadable row: it keeps its grant, but can't authenticate. */
export function unreadableAppliance(row: ApplianceRow): Appliance {
  const credentials = { kind: 'none', damaged: true } as const;
  return { ...cleartextColumns(row), credentials, origin: 'added', waitingSince: null, softwareId: null };
}

function cleartextColumns({ id, name, client_id, portal, scope }: ApplianceRow) {
  return { id, name, clientId: client_id, portal, scope };
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

  /** @returns false if its id, its name or its client_id is taken */
  add(appliance: Appliance): boolean {
    return this.#sql.run(
      `INSERT INTO appliances (id, name, client_id, portal, scope, sealed) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO NOTHING`,
      ...this.#columnValues(appliance),
    );
  }

  /** A damaged row stays damaged: only removing the appliance ends that. */
  update(appliance: Appliance): boolean {
    return this.#sql.run(
      `UPDATE OR IGNORE appliances SET (id, name, client_id, portal, scope, sealed) = (?, ?, ?, ?, ?, ?) WHERE id = ?`,
      ...this.#columnValues(appliance),
      appliance.id,
    );
  }

  remove(id: string): void {
    this.#sql.run('DELETE FROM appliances WHERE id = ?', id);
    this.#damaged.delete(id);
  }

  #columnValues({ id, name, clientId, portal, scope, ...rest }: Appliance): unknown[] {
    const identity = applianceRowIdentity({ id, name, client_id: clientId, portal, scope });
    const content = this.#damaged.has(id) ? '' : this.#sql.sealing.seal(identity, JSON.stringify(rest));
    return [id, name, clientId, portal, scope, content];
  }

  #read(row: ApplianceRow): Appliance {
    const appliance = nullIfDamaged(() => readAppliance(row, this.#sql.sealing));
    if (appliance === null) this.#damaged.add(row.id);
    return appliance ?? unreadableAppliance(row);
  }
}

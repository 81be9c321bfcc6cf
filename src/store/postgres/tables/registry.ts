import type { Appliance } from '../../../core/appliances/appliance.ts';
import type { Connection } from '../../../core/connections/connection.ts';
import type { RegistryChange, RegistryStore } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import {
  type ApplianceRow,
  type ConnectionRow,
  readAppliance,
  readConnection,
  toApplianceRow,
  toConnectionRow,
  unreadableAppliance,
  unreadableConnection,
} from '../../rows/registry-rows.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { SiteDatabase } from '../database/database.ts';
import { isDuplicate } from '../database/errors.ts';
import type { Statements } from '../database/sql.ts';
import type { SiteClocks } from '../link/clocks.ts';
import { REMOVE_INVITE } from './invites.ts';
import { KnownRevisions } from './revisions.ts';

/** The revisions of the rows that were written, by id. */
interface WrittenRevisions {
  readonly connections: ReadonlyMap<string, number>;
  readonly appliances: ReadonlyMap<string, number>;
}

/** The revision of a row that was added. */
const FIRST_REVISION = 1;

type Revised<Row> = Row & { readonly revision: number };

/** The connections and appliances of a site. */
export class SiteRegistry implements RegistryStore {
  readonly damagedAppliances = new Set<string>();
  readonly #database: SiteDatabase;
  readonly #sealing: Sealing;
  readonly #clocks: SiteClocks;
  readonly #onRemoved: (connection: string) => void;
  /** Apart, because the own connection of an appliance may have the appliance's id. */
  readonly #connectionRevisions = new KnownRevisions();
  readonly #applianceRevisions = new KnownRevisions();

  /** @param onRemoved is told each connection that this hub has removed */
  constructor(database: SiteDatabase, sealing: Sealing, clocks: SiteClocks, onRemoved: (connection: string) => void) {
    this.#database = database;
    this.#sealing = sealing;
    this.#clocks = clocks;
    this.#onRemoved = onRemoved;
  }

  async connections(): Promise<Connection[]> {
    const query =
      'SELECT id, name, portal, scope, sealed, revision FROM connections WHERE $1::text[] IS NULL OR id = ANY ($1) ORDER BY name';
    const rows = await this.#connectionRevisions.read(
      null,
      (wanted) => this.#database.read((sql) => sql.all<Revised<ConnectionRow>>(query, wanted && [...wanted])),
      ({ id }) => id,
    );
    return rows.map(
      ({ revision: _, ...row }) => nullIfDamaged(() => readConnection(row, this.#sealing)) ?? unreadableConnection(row),
    );
  }

  async appliances(): Promise<Appliance[]> {
    const query =
      'SELECT id, name, client_id, connection, sealed, revision FROM appliances WHERE $1::text[] IS NULL OR id = ANY ($1) ORDER BY name';
    const rows = await this.#applianceRevisions.read(
      null,
      (wanted) => this.#database.read((sql) => sql.all<Revised<ApplianceRow>>(query, wanted && [...wanted])),
      ({ id }) => id,
    );
    this.damagedAppliances.clear();
    return this.#clocks.translateRead(
      rows.map(({ revision: _, ...row }) => {
        const appliance = nullIfDamaged(() => readAppliance(row, this.#sealing));
        if (appliance === null) this.damagedAppliances.add(row.id);
        return appliance ?? unreadableAppliance(row);
      }),
    );
  }

  async save(change: RegistryChange): Promise<boolean> {
    const { removedAppliances = [], removedConnections = [], usedInvite } = change;
    const news = [
      'registry',
      ...removedAppliances.map((id) => `sessions/${id}`),
      ...removedConnections.map((id) => `grants/${id}`),
      ...(usedInvite === undefined ? [] : ['invites']),
    ];
    const written = await this.#database
      .write(news, (sql) => this.#apply(sql, change))
      .catch((error: unknown) => {
        if (error instanceof Error && isDuplicate(error.cause)) return null;
        throw error;
      });
    if (written === null) return false;
    for (const [id, revision] of written.connections) this.#connectionRevisions.wrote(id, revision);
    for (const [id, revision] of written.appliances) this.#applianceRevisions.wrote(id, revision);
    for (const id of removedConnections) {
      this.#connectionRevisions.removed(id);
      this.#onRemoved(id);
    }
    for (const id of removedAppliances) this.#applianceRevisions.removed(id);
    for (const id of removedAppliances) this.damagedAppliances.delete(id);
    return true;
  }

  /** @returns the revision of the row; null if another hub has changed or removed it */
  async #updateAppliance(sql: Statements, appliance: Appliance): Promise<number | null> {
    const { id, name, client_id, connection, sealed } = toApplianceRow(appliance, this.#sealing);
    const [row] = await sql.all<{ revision: number }>(
      `UPDATE appliances SET name = $2, client_id = $3, connection = $4, sealed = $5, revision = revision + 1
       WHERE id = $1 AND EXISTS (SELECT FROM connections WHERE id = $4) AND revision = $6
       RETURNING revision`,
      // A damaged row stays damaged: only removing the appliance ends that.
      ...[id, name, client_id, connection, this.damagedAppliances.has(id) ? '' : sealed],
      this.#applianceRevisions.get(id),
    );
    return row?.revision ?? null;
  }

  async #updateConnection(sql: Statements, connection: Connection): Promise<number | null> {
    const { id, name, portal, scope, sealed } = toConnectionRow(connection, this.#sealing);
    const [row] = await sql.all<{ revision: number }>(
      `UPDATE connections SET name = $2, portal = $3, scope = $4, sealed = $5, revision = revision + 1
       WHERE id = $1 AND revision = $6 RETURNING revision`,
      ...[id, name, portal, scope, sealed, this.#connectionRevisions.get(id)],
    );
    return row?.revision ?? null;
  }

  /** @returns what was written; null if a part of it is not possible, and the transaction must be rolled back */
  async #apply(sql: Statements, change: RegistryChange): Promise<WrittenRevisions | null> {
    const connections = new Map<string, number>();
    const appliances = new Map<string, number>();
    for (const connection of change.addedConnections ?? []) {
      if (!(await insertConnection(sql, connection, this.#sealing))) return null;
      connections.set(connection.id, FIRST_REVISION);
    }
    for (const connection of change.updatedConnections ?? []) {
      const revision = await this.#updateConnection(sql, connection);
      if (revision === null) return null;
      connections.set(connection.id, revision);
    }
    for (const appliance of change.addedAppliances ?? []) {
      if (!(await insertAppliance(sql, appliance, this.#sealing))) return null;
      appliances.set(appliance.id, FIRST_REVISION);
    }
    for (const appliance of change.updatedAppliances ?? []) {
      const revision = await this.#updateAppliance(sql, appliance);
      if (revision === null) return null;
      appliances.set(appliance.id, revision);
    }
    const { removedAppliances = [], removedConnections = [] } = change;
    if (removedAppliances.length > 0) await sql.run('DELETE FROM appliances WHERE id = ANY ($1)', removedAppliances);
    if (removedConnections.length > 0) {
      const [used] = await sql.all('SELECT FROM appliances WHERE connection = ANY ($1) LIMIT 1', removedConnections);
      if (used !== undefined) return null;
      await sql.run('DELETE FROM connections WHERE id = ANY ($1)', removedConnections);
    }
    if (change.usedInvite !== undefined && (await sql.run(REMOVE_INVITE, change.usedInvite)) === 0) return null;
    return { connections, appliances };
  }
}

/**
 * Adds a connection, or an appliance, in a transaction.
 * @param revision of the row, as SQL
 * @returns false if its id, name or client_id is taken, or there is no such connection
 */
export async function insertConnection(
  sql: Statements,
  added: Connection,
  sealing: Sealing,
  revision = String(FIRST_REVISION),
): Promise<boolean> {
  const { id, name, portal, scope, sealed } = toConnectionRow(added, sealing);
  const count = await sql.run(
    `INSERT INTO connections (id, name, portal, scope, sealed, revision)
     VALUES ($1, $2, $3, $4, $5, ${revision}) ON CONFLICT DO NOTHING`,
    ...[id, name, portal, scope, sealed],
  );
  return count > 0;
}

/** See {@link insertConnection}. */
export async function insertAppliance(
  sql: Statements,
  added: Appliance,
  sealing: Sealing,
  revision = String(FIRST_REVISION),
): Promise<boolean> {
  const { id, name, client_id, connection, sealed } = toApplianceRow(added, sealing);
  const count = await sql.run(
    `INSERT INTO appliances (id, name, client_id, connection, sealed, revision)
     SELECT $1, $2, $3, id, $5, ${revision} FROM connections WHERE id = $4 ON CONFLICT DO NOTHING`,
    ...[id, name, client_id, connection, sealed],
  );
  return count > 0;
}

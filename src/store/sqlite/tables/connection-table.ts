import type { Connection } from '../../../core/connections/connection.ts';
import {
  type ConnectionRow,
  readConnection,
  toConnectionRow,
  unreadableConnection,
} from '../../rows/connection-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { Sql } from '../sql.ts';

/** The connections as rows. */
export class ConnectionTable {
  readonly #sql: Sql;
  readonly #damaged = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the connections whose rows were changed or can't be read. */
  get damaged(): ReadonlySet<string> {
    return this.#damaged;
  }

  all(): Connection[] {
    this.#damaged.clear();
    return this.#sql.all<ConnectionRow>('SELECT * FROM connections ORDER BY name').map((row) => this.#read(row));
  }

  /** @returns false if its id or its name is taken */
  add(connection: Connection): boolean {
    return this.#sql.run(
      'INSERT INTO connections (id, name, portal, scope, sealed) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
      ...this.#columnValues(connection),
    );
  }

  /** Repairs a damaged row. @returns false if it does not exist, or its name is taken */
  update(connection: Connection): boolean {
    return this.#sql.run(
      'UPDATE OR IGNORE connections SET (id, name, portal, scope, sealed) = (?, ?, ?, ?, ?) WHERE id = ?',
      ...this.#columnValues(connection),
      connection.id,
    );
  }

  /** Whether an appliance uses a connection. */
  isUsed(id: string): boolean {
    return this.#sql.get('SELECT id FROM appliances WHERE connection = ?', id) !== undefined;
  }

  has(id: string): boolean {
    return this.#sql.get('SELECT 1 FROM connections WHERE id = ?', id) !== undefined;
  }

  /** Removes a connection with its grant, pairings and history. */
  remove(id: string): void {
    this.#sql.run('DELETE FROM connections WHERE id = ?', id);
  }

  /** Call this when the transaction that has updated or removed connections is on disk. */
  clearDamaged(ids: Iterable<string>): void {
    for (const id of ids) this.#damaged.delete(id);
  }

  #columnValues(connection: Connection): unknown[] {
    const { id, name, portal, scope, sealed } = toConnectionRow(connection, this.#sql.sealing);
    return [id, name, portal, scope, sealed];
  }

  #read(row: ConnectionRow): Connection {
    const connection = nullIfDamaged(() => readConnection(row, this.#sql.sealing));
    if (connection === null) this.#damaged.add(row.id);
    return connection ?? unreadableConnection(row);
  }
}

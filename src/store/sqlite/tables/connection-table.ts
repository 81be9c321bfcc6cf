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

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  all(): Connection[] {
    return this.#sql
      .all<ConnectionRow>('SELECT * FROM connections ORDER BY name')
      .map((row) => nullIfDamaged(() => readConnection(row, this.#sql.sealing)) ?? unreadableConnection(row));
  }

  /** @returns false if its id or its name is taken */
  add(connection: Connection): boolean {
    return this.#sql.run(
      'INSERT INTO connections (id, name, portal, scope, sealed) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING',
      ...this.#columnValues(connection),
    );
  }

  /** @returns false if it does not exist, or its name is taken */
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

  #columnValues(connection: Connection): unknown[] {
    const { id, name, portal, scope, sealed } = toConnectionRow(connection, this.#sql.sealing);
    return [id, name, portal, scope, sealed];
  }
}

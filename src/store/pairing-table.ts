import type { PairingRow } from './rows.ts';
import type { Sql } from './sql.ts';

/** How many ended pairings of an appliance are kept, so that their result page can be shown again. */
const ENDED_KEPT = 5;

/** The pairings as rows; their numbers are the order in which they began. */
export class PairingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  all(): PairingRow[] {
    return this.#sql.all<PairingRow>(
      'SELECT id, appliance, sealed, attributes, step, mac FROM pairings ORDER BY number',
    );
  }

  /** Two statements: to be called in a transaction. */
  put(row: PairingRow): void {
    this.#sql.run(
      `INSERT INTO pairings (id, appliance, sealed, attributes, step, mac) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET
         sealed = excluded.sealed, attributes = excluded.attributes, step = excluded.step, mac = excluded.mac`,
      ...[row.id, row.appliance, row.sealed, row.attributes, row.step, row.mac],
    );
    this.#sql.run(
      `DELETE FROM pairings WHERE appliance = ? AND json_extract(step, '$.kind') = 'ended' AND number <=
         (SELECT number FROM pairings WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${ENDED_KEPT})`,
      ...[row.appliance, row.appliance],
    );
  }
}

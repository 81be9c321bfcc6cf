import type { Pairing } from '../../../core/pairings/pairing.ts';
import { MAX_ENDED_PAIRINGS, type PairingRow, readPairing, toPairingRow } from '../../rows/pairing-row.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import type { Sql } from '../sql.ts';

/** The pairings as rows. */
export class PairingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Leaves out unreadable pairings: a new one is easily started. @param ids left out: all of them */
  all(ids?: ReadonlySet<string>): Pairing[] {
    const rows =
      ids === undefined
        ? this.#sql.all<PairingRow>('SELECT * FROM pairings ORDER BY number')
        : this.#sql.all<PairingRow>(
            'SELECT * FROM pairings WHERE id IN (SELECT value FROM json_each(?)) ORDER BY number',
            JSON.stringify([...ids]),
          );
    return rows.flatMap((row) => nullIfDamaged(() => readPairing(row, this.#sql.sealing)) ?? []);
  }

  /** Runs two statements: call it in a transaction. */
  save(pairing: Pairing): void {
    const { id, connection, step, sealed } = toPairingRow(pairing, this.#sql.sealing);
    this.#sql.run(
      `INSERT INTO pairings (id, connection, step, sealed) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET step = excluded.step, sealed = excluded.sealed`,
      ...[id, connection, step, sealed],
    );
    this.#sql.run(
      `DELETE FROM pairings WHERE connection = ? AND step = 'ended' AND number <=
         (SELECT number FROM pairings WHERE connection = ? ORDER BY number DESC LIMIT 1 OFFSET ${MAX_ENDED_PAIRINGS})`,
      ...[connection, connection],
    );
  }
}

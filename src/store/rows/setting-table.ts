import * as v from 'valibot';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, sealed } from './schemas.ts';

/** A row of `settings`. */
export const settingRow = v.object({ name: v.string(), sealed });

export type SettingRow = v.InferOutput<typeof settingRow>;

/** The identity that a row is sealed with. */
export function settingRowIdentity({ name }: Pick<SettingRow, 'name'>): string {
  return `settings/${name}`;
}

/** Opens a row. @throws Failure as {@link Sealing} */
export function readSetting(row: SettingRow, sealing: Sealing): string {
  return sealing.open(settingRowIdentity(row), row.sealed);
}

/** The hub's own settings as rows. */
export class SettingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Null also if the value can't be read: the caller creates it again. */
  read(name: string): string | null {
    const row = this.#sql.get<SettingRow>('SELECT name, sealed FROM settings WHERE name = ?', name);
    return row === undefined ? null : nullIfDamaged(() => readSetting(row, this.#sql.sealing));
  }

  save(name: string, value: string): void {
    this.#sql.run(
      'INSERT OR REPLACE INTO settings (name, sealed) VALUES (?, ?)',
      ...[name, this.#sql.sealing.seal(settingRowIdentity({ name }), value)],
    );
  }
}

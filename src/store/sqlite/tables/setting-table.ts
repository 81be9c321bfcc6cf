import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSetting, type SettingRow, toSettingRow } from '../../rows/setting-row.ts';
import type { Sql } from '../sql.ts';

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

  /** Runs several statements: call it in a transaction. @param values by name */
  save(values: Readonly<Record<string, string>>): void {
    for (const [name, value] of Object.entries(values)) {
      const { sealed } = toSettingRow(name, value, this.#sql.sealing);
      this.#sql.run('INSERT OR REPLACE INTO settings (name, sealed) VALUES (?, ?)', name, sealed);
    }
  }
}

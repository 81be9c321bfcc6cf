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

  save(name: string, value: string): void {
    const row = toSettingRow(name, value, this.#sql.sealing);
    this.#sql.run('INSERT OR REPLACE INTO settings (name, sealed) VALUES (?, ?)', row.name, row.sealed);
  }
}

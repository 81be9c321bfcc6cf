import * as v from 'valibot';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, sealed } from './schemas.ts';

/** A row of `settings`. */
export const settingRow = v.object({ name: v.string(), sealed });

export type SettingRow = v.InferOutput<typeof settingRow>;

/** What a row is sealed for. */
export function settingRowIdentity({ name }: Pick<SettingRow, 'name'>): string {
  return `settings/${name}`;
}

/** @throws Failure as {@link Sealing} */
export function readSetting(row: SettingRow, sealing: Sealing): string {
  return sealing.open(settingRowIdentity(row), row.sealed);
}

/** The hub's own values, sealed. */
export class SettingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** One that can't be read counts as none: it will be made anew. */
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

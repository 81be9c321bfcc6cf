import * as v from 'valibot';
import { Failure } from '../../core/failure.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { sealed } from './schemas.ts';

/** A row of `settings`. */
export const settingRow = v.object({ name: v.string(), sealed });

export type SettingRow = v.InferOutput<typeof settingRow>;

/** What a row is sealed for. */
export function settingPlace({ name }: Pick<SettingRow, 'name'>): string {
  return `settings/${name}`;
}

/** @throws Failure as {@link Sealing} */
export function readSetting(row: SettingRow, sealing: Sealing): string {
  return sealing.open(settingPlace(row), row.sealed);
}

const PUT = 'INSERT INTO settings (name, sealed) VALUES (?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed';

/** The hub's own values, sealed. */
export class SettingTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * One that can't be read counts as none: it will be made anew.
   * @param keep whether what is there is kept under another name, for whoever can make sense of it
   */
  read(name: string, keep: boolean): string | null {
    const row = this.#sql.get<SettingRow>('SELECT name, sealed FROM settings WHERE name = ?', name);
    if (row === undefined) return null;
    try {
      return readSetting(row, this.#sql.sealing);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      if (keep) this.#keep(row);
      return null;
    }
  }

  /** A hub whose disk is full starts all the same. */
  #keep({ name, sealed }: SettingRow): void {
    this.#sql.runIfWritable(PUT, `${name}.damaged`, sealed);
  }

  save(name: string, value: string): void {
    this.#sql.run(PUT, name, this.#sql.sealing.seal(settingPlace({ name }), value));
  }
}

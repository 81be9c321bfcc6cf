import * as v from 'valibot';
import type { Sealing } from '../keys/sealing.ts';
import { sealed } from './schemas.ts';

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

/** A setting as a row. */
export function toSettingRow(name: string, value: string, sealing: Sealing): SettingRow {
  return { name, sealed: sealing.seal(settingRowIdentity({ name }), value) };
}

import * as v from 'valibot';
import type { Sealing } from '../keys/sealing.ts';
import { sealed } from './schemas.ts';

/** A row of `settings`. */
export const settingRow = v.object({ name: v.string(), sealed });

export type SettingRow = v.InferOutput<typeof settingRow>;

/**
 * The identity that a row is sealed with.
 * @param hub the id of the hub of a site that has the setting for itself; left out or null for any other setting
 */
export function settingRowIdentity({ name }: Pick<SettingRow, 'name'>, hub: string | null = null): string {
  return hub === null ? `settings/${name}` : JSON.stringify(['hub_settings', hub, name]);
}

/** Opens a row. @param hub as in {@link settingRowIdentity} @throws Failure as {@link Sealing} */
export function readSetting(row: SettingRow, sealing: Sealing, hub: string | null = null): string {
  return sealing.open(settingRowIdentity(row, hub), row.sealed);
}

/** A setting as a row. @param hub as in {@link settingRowIdentity} */
export function toSettingRow(name: string, value: string, sealing: Sealing, hub: string | null = null): SettingRow {
  return { name, sealed: sealing.seal(settingRowIdentity({ name }, hub), value) };
}

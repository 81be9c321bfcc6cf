import { HUB_SETTINGS } from '../../../core/site.ts';
import type { SettingStore } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSetting, type SettingRow, toSettingRow } from '../../rows/setting-row.ts';
import type { SiteDatabase } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';

/** The settings of a site, and those of each hub. */
export class SiteSettings implements SettingStore {
  readonly #database: SiteDatabase;
  readonly #sealing: Sealing;
  readonly #hubId: string;

  constructor(database: SiteDatabase, sealing: Sealing, hubId: string) {
    this.#database = database;
    this.#sealing = sealing;
    this.#hubId = hubId;
  }

  /**
   * Null also if the value can't be read: the caller creates it again. A hub of a site has its id outside of the store,
   * and in the store only from a restore until it starts again.
   */
  async get(name: string): Promise<string | null> {
    return (await this.getAll([name])).get(name) ?? (name === 'hub_id' ? this.#hubId : null);
  }

  /** Several, as they are at one moment, without those that are not set or can't be read. */
  getAll(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#database.read((sql) => this.#readIn(sql, names));
  }

  async save(values: Readonly<Record<string, string>>): Promise<void> {
    await this.#database.write(newsOf(Object.keys(values)), async (sql) => {
      for (const [name, value] of Object.entries(values))
        await saveSetting(sql, name, value, this.#sealing, this.#hubId);
      return true;
    });
  }

  async replace(
    expected: Readonly<Record<string, string | null>>,
    values: Readonly<Record<string, string>>,
  ): Promise<boolean> {
    const replaced = await this.#database.write(newsOf(Object.keys(values)), async (sql) => {
      // Rare, and a setting that does not exist has no row to lock.
      await sql.run('LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE');
      const stored = await this.#readIn(sql, Object.keys(expected));
      if (Object.entries(expected).some(([name, value]) => (stored.get(name) ?? null) !== value)) return null;
      for (const [name, value] of Object.entries(values))
        await saveSetting(sql, name, value, this.#sealing, this.#hubId);
      return true;
    });
    return replaced !== null;
  }

  async #readIn(sql: Statements, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const rows = await sql.all<SettingRow & { readonly hub: string | null }>(
      `SELECT name, sealed, NULL AS hub FROM settings WHERE name = ANY ($1)
       UNION ALL SELECT name, sealed, hub FROM hub_settings WHERE name = ANY ($1) AND hub = $2`,
      ...[names, this.#hubId],
    );
    return new Map(
      rows.flatMap((row) => {
        const value = nullIfDamaged(() => readSetting(row, this.#sealing, row.hub));
        return value === null ? [] : [[row.name, value]];
      }),
    );
  }
}

/** Saves a setting in a transaction. @param hubId of this hub: some settings are its own */
export async function saveSetting(
  sql: Statements,
  name: string,
  value: string,
  sealing: Sealing,
  hubId: string,
): Promise<void> {
  const hub = HUB_SETTINGS.has(name) ? hubId : null;
  const { sealed } = toSettingRow(name, value, sealing, hub);
  if (hub !== null) {
    await sql.run(
      `INSERT INTO hub_settings (hub, name, sealed) VALUES ($1, $2, $3)
       ON CONFLICT (hub, name) DO UPDATE SET sealed = excluded.sealed`,
      ...[hub, name, sealed],
    );
    return;
  }
  await sql.run(
    'INSERT INTO settings (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed',
    ...[name, sealed],
  );
}

function newsOf(names: readonly string[]): string[] {
  return names.filter((name) => !HUB_SETTINGS.has(name)).map((name) => `settings/${name}`);
}

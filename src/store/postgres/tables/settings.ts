import { HUB_SETTINGS } from '../../../core/site.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSetting, type SettingRow, toSettingRow } from '../../rows/setting-row.ts';
import type { SiteDatabase } from '../connection/database.ts';
import type { Statements } from '../connection/sql.ts';

/** The settings of a site, and those of each hub. */
export class SiteSettings {
  readonly #database: SiteDatabase;
  readonly #sealing: Sealing;
  readonly #hubId: string;

  constructor(database: SiteDatabase, sealing: Sealing, hubId: string) {
    this.#database = database;
    this.#sealing = sealing;
    this.#hubId = hubId;
  }

  /** Null also if the value can't be read: the caller creates it again. */
  async read(name: string): Promise<string | null> {
    return this.#database.read((sql) => this.#readIn(sql, name));
  }

  async save(values: Readonly<Record<string, string>>): Promise<void> {
    await this.#database.write(newsOf(Object.keys(values)), async (sql) => {
      for (const [name, value] of Object.entries(values)) await this.saveIn(sql, name, value);
      return true;
    });
  }

  /** @returns false if one of them is set already; nothing has changed then */
  async create(values: Readonly<Record<string, string>>): Promise<boolean> {
    const names = Object.keys(values);
    const created = await this.#database.write(newsOf(names), async (sql) => {
      await lock(sql);
      for (const name of names) if ((await this.#readIn(sql, name)) !== null) return null;
      for (const [name, value] of Object.entries(values)) await this.saveIn(sql, name, value);
      return true;
    });
    return created !== null;
  }

  async change(name: string, change: (stored: string | null) => string): Promise<string> {
    let value = '';
    await this.#database.write(newsOf([name]), async (sql) => {
      await lock(sql);
      value = change(await this.#readIn(sql, name));
      await this.saveIn(sql, name, value);
      return true;
    });
    return value;
  }

  /** Saves a setting in a transaction. */
  async saveIn(sql: Statements, name: string, value: string): Promise<void> {
    const { sealed } = toSettingRow(name, value, this.#sealing);
    if (HUB_SETTINGS.has(name)) {
      await sql.run(
        `INSERT INTO hub_settings (hub, name, sealed) VALUES ($1, $2, $3)
         ON CONFLICT (hub, name) DO UPDATE SET sealed = excluded.sealed`,
        ...[this.#hubId, name, sealed],
      );
      return;
    }
    await sql.run(
      'INSERT INTO settings (name, sealed) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed',
      ...[name, sealed],
    );
  }

  async #readIn(sql: Statements, name: string): Promise<string | null> {
    const [row] = HUB_SETTINGS.has(name)
      ? await sql.all<SettingRow>(
          'SELECT name, sealed FROM hub_settings WHERE hub = $1 AND name = $2',
          ...[this.#hubId, name],
        )
      : await sql.all<SettingRow>('SELECT name, sealed FROM settings WHERE name = $1', name);
    return row === undefined ? null : nullIfDamaged(() => readSetting(row, this.#sealing));
  }
}

function newsOf(names: readonly string[]): string[] {
  return names.filter((name) => !HUB_SETTINGS.has(name)).map((name) => `settings/${name}`);
}

/** Changes of settings exclude each other: they are rare, and a setting that does not exist has no row to lock. */
async function lock(sql: Statements): Promise<void> {
  await sql.run('LOCK TABLE settings IN SHARE ROW EXCLUSIVE MODE');
}

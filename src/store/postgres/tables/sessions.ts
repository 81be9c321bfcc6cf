import { type Session, surplusSessions } from '../../../core/appliances/session.ts';
import type { SessionStore } from '../../../core/store.ts';
import type { Sealing } from '../../keys/sealing.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSession, type SessionRow, toSessionRow } from '../../rows/session-row.ts';
import type { SiteDatabase } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';
import type { SiteClocks } from '../link/clocks.ts';

const SESSIONS = 'SELECT number, hash, appliance, device, sealed FROM sessions';

/** The sessions of a site's appliances. */
export class SiteSessions implements SessionStore {
  readonly rejected = new Set<string>();
  readonly #database: SiteDatabase;
  readonly #sealing: Sealing;
  readonly #clocks: SiteClocks;

  constructor(database: SiteDatabase, sealing: Sealing, clocks: SiteClocks) {
    this.#database = database;
    this.#sealing = sealing;
    this.#clocks = clocks;
  }

  async all(appliances?: ReadonlySet<string>): Promise<Session[]> {
    const rows = await this.#database.read((sql) =>
      sql.all<SessionRow>(
        `${SESSIONS} WHERE $1::text[] IS NULL OR appliance = ANY ($1) ORDER BY number`,
        appliances === undefined ? null : [...appliances],
      ),
    );
    return this.#clocks.translateRead(
      rows.flatMap((row) => {
        const session = nullIfDamaged(() => readSession(row, this.#sealing));
        if (session === null) this.rejected.add(row.appliance);
        return session ?? [];
      }),
    );
  }

  async save(session: Session): Promise<boolean> {
    const { hash, appliance, device, sealed } = toSessionRow(session, this.#sealing);
    const saved = await this.#database.write([`sessions/${appliance}`], async (sql) => {
      const count = await sql.run(
        `INSERT INTO sessions (hash, appliance, device, sealed)
         SELECT $1, id, $2, $3 FROM appliances WHERE id = $4
         ON CONFLICT (device) DO UPDATE SET number = DEFAULT, hash = excluded.hash, sealed = excluded.sealed`,
        ...[hash, device, sealed, appliance],
      );
      if (count === 0) return null;
      await dropSurplusSessions(sql, this.#sealing, appliance);
      return true;
    });
    return saved !== null;
  }

  async end(hash: string): Promise<boolean> {
    const [row] = await this.#database.read((sql) =>
      sql.all<{ appliance: string }>('SELECT appliance FROM sessions WHERE hash = $1', hash),
    );
    if (row === undefined) return false;
    const ended = await this.#database.write(
      [`sessions/${row.appliance}`],
      async (sql) => (await sql.run('DELETE FROM sessions WHERE hash = $1', hash)) > 0 || null,
    );
    return ended !== null;
  }
}

/** Drops the sessions that are more than each appliance may have, in a transaction. @param appliance null for all */
export async function dropSurplusSessions(
  sql: Statements,
  sealing: Sealing,
  appliance: string | null = null,
): Promise<void> {
  const rows = await sql.all<SessionRow>(
    `${SESSIONS} WHERE $1::text IS NULL OR appliance = $1 ORDER BY number`,
    appliance,
  );
  const surplus = surplusSessions(rows.flatMap((row) => nullIfDamaged(() => readSession(row, sealing)) ?? []));
  await sql.run(
    'DELETE FROM sessions WHERE hash = ANY ($1)',
    surplus.map(({ hash }) => hash),
  );
}

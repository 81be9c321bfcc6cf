import { type Session, surplusSessions } from '../../../core/appliances/session.ts';
import { nullIfDamaged } from '../../rows/schemas.ts';
import { readSession, type SessionRow, toSessionRow } from '../../rows/session-row.ts';
import type { Sql } from '../sql.ts';

/** The sessions as rows: refresh tokens that the hub itself has issued. */
export class SessionTable {
  readonly #sql: Sql;
  readonly #rejected = new Set<string>();
  #rejectedHashes: string[] = [];

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances with a session that the hub has not issued; such sessions are rejected. */
  get rejected(): ReadonlySet<string> {
    return this.#rejected;
  }

  /** Only sessions that the hub has issued. */
  all(): Session[] {
    this.#rejectedHashes = [];
    return this.#sql.all<SessionRow>('SELECT * FROM sessions ORDER BY number').flatMap((row) => {
      const session = nullIfDamaged(() => readSession(row, this.#sql.sealing));
      if (session !== null) return [session];
      this.#rejected.add(row.appliance);
      this.#rejectedHashes.push(row.hash);
      return [];
    });
  }

  /** @returns false if its appliance was removed */
  save(session: Session): boolean {
    const { hash, appliance, device } = session;
    return this.#sql.transaction(() => {
      const saved = this.#sql.run(
        `INSERT OR REPLACE INTO sessions (hash, appliance, device, sealed)
         SELECT ?, id, ?, ? FROM appliances WHERE id = ?`,
        ...[hash, device, this.#seal(session), appliance],
      );
      if (saved) this.#dropSurplus();
      return saved;
    });
  }

  /** Adds sessions of a backup, oldest first. The current sessions stay, and count as newer. */
  addOlder(sessions: readonly Session[]): void {
    for (const session of sessions.toReversed()) {
      this.#sql.run(
        `INSERT INTO sessions (number, hash, appliance, device, sealed)
         VALUES ((SELECT coalesce(min(number), 1) - 1 FROM sessions), ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        ...[session.hash, session.appliance, session.device, this.#seal(session)],
      );
    }
    this.#dropSurplus();
  }

  end(hash: string): boolean {
    return this.#sql.run('DELETE FROM sessions WHERE hash = ?', hash);
  }

  /** Whether {@link all} has rejected sessions, which {@link removeRejected} removes. */
  get hasRowsToRemove(): boolean {
    return this.#rejectedHashes.length > 0;
  }

  removeRejected(): void {
    for (const hash of this.#rejectedHashes) this.end(hash);
  }

  #seal(session: Session): string {
    return toSessionRow(session, this.#sql.sealing).sealed;
  }

  #dropSurplus(): void {
    for (const { hash } of surplusSessions(this.all())) this.end(hash);
  }
}

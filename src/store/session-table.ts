import { MOST_SESSIONS, type Session } from '../core/session.ts';
import { readSession, type SessionRow } from './appliance-rows.ts';
import type { Sql } from './sql.ts';

/** The refresh tokens of the hub's own; their numbers are the order in which they came. */
export class SessionTable {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  all(): Session[] {
    return this.#sql.all<SessionRow>('SELECT * FROM sessions ORDER BY number').map((row) => readSession(row));
  }

  /** @returns false where its appliance is gone */
  save({ hash, appliance, device, begun }: Session): boolean {
    return this.#sql.transaction(() => {
      const saved = this.#sql.run(
        `INSERT OR REPLACE INTO sessions (hash, appliance, device, begun)
         SELECT ?, id, ?, ? FROM appliances WHERE id = ?`,
        ...[hash, device, JSON.stringify(begun), appliance],
      );
      if (saved) this.#dropOldest(appliance);
      return saved;
    });
  }

  /** Adds sessions of before, oldest first: those at hand stay, and count as newer. */
  addOlder(sessions: readonly Session[]): void {
    for (const { hash, appliance, device, begun } of sessions.toReversed()) {
      this.#sql.run(
        `INSERT INTO sessions (number, hash, appliance, device, begun)
         VALUES ((SELECT coalesce(min(number), 1) - 1 FROM sessions), ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        ...[hash, appliance, device, JSON.stringify(begun)],
      );
    }
    for (const appliance of new Set(sessions.map((session) => session.appliance))) this.#dropOldest(appliance);
  }

  end(hash: string): boolean {
    return this.#sql.run('DELETE FROM sessions WHERE hash = ?', hash);
  }

  endAll(appliance: string): void {
    this.#sql.run('DELETE FROM sessions WHERE appliance = ?', appliance);
  }

  #dropOldest(appliance: string): void {
    this.#sql.run(
      `DELETE FROM sessions WHERE appliance = ? AND number <=
         (SELECT number FROM sessions WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${MOST_SESSIONS})`,
      ...[appliance, appliance],
    );
  }
}

import * as v from 'valibot';
import { MAX_SESSIONS, type Session } from '../../core/appliances/session.ts';
import { instant } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import { parseJson } from './schemas.ts';

/** A row of `sessions`; `number` is the order in which they came. */
export const sessionRow = v.object({
  number: v.number(),
  hash: v.string(),
  appliance: v.string(),
  device: v.string(),
  begun: v.string(),
  mac: v.nullable(v.string()),
});

export type SessionRow = v.InferOutput<typeof sessionRow>;

/** Of a row that the hub has signed. */
export function readSession({ hash, appliance, device, begun }: Omit<SessionRow, 'number' | 'mac'>): Session {
  return { hash, appliance, device, begun: parseJson(instant, `sessions/${appliance}`, begun) };
}

/** The refresh tokens of the hub's own; their numbers are the order in which they came. */
export class SessionTable {
  readonly #sql: Sql;
  readonly #refused = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances of which a session was found that the hub has not given; it is forgotten. */
  get refused(): ReadonlySet<string> {
    return this.#refused;
  }

  /** Those that the hub has given, and no others. */
  all(): Session[] {
    return this.#sql.all<SessionRow>('SELECT * FROM sessions ORDER BY number').flatMap((row) => {
      if (this.#sql.sealing.isSigned('sessions', row)) return [readSession(row)];
      this.#refused.add(row.appliance);
      this.#sql.runIfWritable('DELETE FROM sessions WHERE hash = ?', row.hash);
      return [];
    });
  }

  /** @returns false where its appliance is gone */
  save(session: Session): boolean {
    const { hash, appliance, device, begun, mac } = this.#row(session);
    return this.#sql.transaction(() => {
      const saved = this.#sql.run(
        `INSERT OR REPLACE INTO sessions (hash, appliance, device, begun, mac)
         SELECT ?, id, ?, ?, ? FROM appliances WHERE id = ?`,
        ...[hash, device, begun, mac, appliance],
      );
      if (saved) this.#dropOldest(appliance);
      return saved;
    });
  }

  /** Adds sessions of before, oldest first: those at hand stay, and count as newer. */
  addOlder(sessions: readonly Session[]): void {
    for (const session of sessions.toReversed()) {
      const { hash, appliance, device, begun, mac } = this.#row(session);
      this.#sql.run(
        `INSERT INTO sessions (number, hash, appliance, device, begun, mac)
         VALUES ((SELECT coalesce(min(number), 1) - 1 FROM sessions), ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
        ...[hash, appliance, device, begun, mac],
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

  #row({ hash, appliance, device, begun }: Session) {
    const row = { hash, appliance, device, begun: JSON.stringify(begun) };
    return { ...row, mac: this.#sql.sealing.sign('sessions', row) };
  }

  #dropOldest(appliance: string): void {
    this.#sql.run(
      `DELETE FROM sessions WHERE appliance = ? AND number <=
         (SELECT number FROM sessions WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${MAX_SESSIONS})`,
      ...[appliance, appliance],
    );
  }
}

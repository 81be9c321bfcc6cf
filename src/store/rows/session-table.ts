import * as v from 'valibot';
import { MAX_SESSIONS_PER_APPLIANCE, type Session } from '../../core/appliances/session.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, parseJson, sealed } from './schemas.ts';

const sealedAttributes = v.object({ begun: instantSchema });

/** A row of `sessions`; `number` is the order in which they were issued. */
export const sessionRow = v.object({
  number: v.number(),
  hash: v.string(),
  appliance: v.string(),
  device: v.string(),
  sealed,
});

export type SessionRow = v.InferOutput<typeof sessionRow>;

/** The identity that a row is sealed with: this token of this appliance. */
export function sessionRowIdentity({
  hash,
  appliance,
  device,
}: Pick<Session, 'hash' | 'appliance' | 'device'>): string {
  return `sessions/${hash}/${appliance}/${device}`;
}

/** Opens a row. @throws Failure as {@link Sealing}, or `store_unreadable` if its content is invalid */
export function readSession(row: SessionRow, sealing: Sealing): Session {
  const where = sessionRowIdentity(row);
  const { hash, appliance, device } = row;
  return { hash, appliance, device, ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

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
      if (saved) this.#dropOldest(appliance);
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
    for (const appliance of new Set(sessions.map((session) => session.appliance))) this.#dropOldest(appliance);
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

  /** Ends the sessions of all appliances of a connection. */
  endAll(connection: string): void {
    this.#sql.run(
      'DELETE FROM sessions WHERE appliance IN (SELECT id FROM appliances WHERE connection = ?)',
      connection,
    );
  }

  #seal({ begun, ...identity }: Session): string {
    return this.#sql.sealing.seal(sessionRowIdentity(identity), JSON.stringify({ begun }));
  }

  #dropOldest(appliance: string): void {
    this.#sql.run(
      `DELETE FROM sessions WHERE appliance = ? AND number <=
         (SELECT number FROM sessions WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${MAX_SESSIONS_PER_APPLIANCE})`,
      ...[appliance, appliance],
    );
  }
}

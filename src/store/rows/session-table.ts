import * as v from 'valibot';
import { MAX_SESSIONS_PER_APPLIANCE, type Session } from '../../core/appliances/session.ts';
import { instantSchema } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged, parseJson, sealed } from './schemas.ts';

const sealedAttributes = v.object({ begun: instantSchema });

/** A row of `sessions`; `number` is the order in which they came. */
export const sessionRow = v.object({
  number: v.number(),
  hash: v.string(),
  appliance: v.string(),
  device: v.string(),
  sealed,
});

export type SessionRow = v.InferOutput<typeof sessionRow>;

/** What a row is sealed for: this token, of this appliance. */
export function sessionRowIdentity({
  hash,
  appliance,
  device,
}: Pick<Session, 'hash' | 'appliance' | 'device'>): string {
  return `sessions/${hash}/${appliance}/${device}`;
}

/** @throws Failure as {@link Sealing}, or `store_unreadable` where it makes no sense */
export function readSession(row: SessionRow, sealing: Sealing): Session {
  const where = sessionRowIdentity(row);
  const { hash, appliance, device } = row;
  return { hash, appliance, device, ...parseJson(sealedAttributes, where, sealing.open(where, row.sealed)) };
}

/** The refresh tokens of the hub's own; their numbers are the order in which they came. */
export class SessionTable {
  readonly #sql: Sql;
  readonly #rejected = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Ids of the appliances of which a session was found that the hub has not given; it is forgotten. */
  get rejected(): ReadonlySet<string> {
    return this.#rejected;
  }

  /** Those that the hub has given, and no others. */
  all(): Session[] {
    return this.#sql.all<SessionRow>('SELECT * FROM sessions ORDER BY number').flatMap((row) => {
      const session = nullIfDamaged(() => readSession(row, this.#sql.sealing));
      if (session !== null) return [session];
      this.#rejected.add(row.appliance);
      this.#sql.runIfWritable('DELETE FROM sessions WHERE hash = ?', row.hash);
      return [];
    });
  }

  /** @returns false where its appliance is gone */
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

  /** Adds sessions of before, oldest first: those at hand stay, and count as newer. */
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

  endAll(appliance: string): void {
    this.#sql.run('DELETE FROM sessions WHERE appliance = ?', appliance);
  }

  #seal({ begun, ...named }: Session): string {
    return this.#sql.sealing.seal(sessionRowIdentity(named), JSON.stringify({ begun }));
  }

  #dropOldest(appliance: string): void {
    this.#sql.run(
      `DELETE FROM sessions WHERE appliance = ? AND number <=
         (SELECT number FROM sessions WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${MAX_SESSIONS_PER_APPLIANCE})`,
      ...[appliance, appliance],
    );
  }
}

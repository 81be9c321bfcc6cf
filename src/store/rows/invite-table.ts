import * as v from 'valibot';
import type { Invite } from '../../core/appliances/registration.ts';
import { instant } from '../../system/instant-schema.ts';
import type { Sql } from '../database/sql.ts';
import { parseJson, scope } from './schemas.ts';

/** A row of `invites`. */
export const inviteRow = v.object({
  hash: v.string(),
  name: v.nullable(v.string()),
  scope,
  portal: v.string(),
  begun: v.string(),
  lifetime: v.number(),
  mac: v.nullable(v.string()),
});

export type InviteRow = v.InferOutput<typeof inviteRow>;

/** The invites of appliances that are still to come. */
export class InviteTable {
  readonly #sql: Sql;
  #refused = false;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Whether an invite was found that the hub has not made, and was forgotten. */
  get refused(): boolean {
    return this.#refused;
  }

  all(): Invite[] {
    return this.#sql.all<InviteRow>('SELECT * FROM invites').flatMap((row) => {
      if (this.#sql.sealing.isSigned('invites', row)) {
        const { hash, name, scope, portal, begun, lifetime } = row;
        return [{ hash, name, scope, portal, begun: parseJson(instant, 'invites', begun), lifetime }];
      }
      this.#refused = true;
      this.#sql.runIfWritable('DELETE FROM invites WHERE hash = ?', row.hash);
      return [];
    });
  }

  has(hash: string): boolean {
    return this.#sql.get('SELECT hash FROM invites WHERE hash = ?', hash) !== undefined;
  }

  save({ hash, name, scope, portal, begun, lifetime }: Invite): void {
    const row = { hash, name, scope, portal, begun: JSON.stringify(begun), lifetime };
    this.#sql.run(
      'INSERT OR REPLACE INTO invites (hash, name, scope, portal, begun, lifetime, mac) VALUES (?, ?, ?, ?, ?, ?, ?)',
      ...[...Object.values(row), this.#sql.sealing.sign('invites', row)],
    );
  }

  remove(hash: string): void {
    this.#sql.run('DELETE FROM invites WHERE hash = ?', hash);
  }
}

import type { SiteNews } from '../../../core/site.ts';
import { SerialQueue } from '../../../system/serial-queue.ts';
import type { Statements } from '../database/sql.ts';

/** A hub that has not looked for this long reads everything again, in ms: shorter than rows of `changes` are kept. */
const MAX_LOOK_GAP = 3_600_000;

/** The news of a restore: a backup was restored into the site. */
export const RESTORED = 'restored';

/** The news that anything may have changed. */
export const ANYTHING = 'all';

/** The news of some rows, such as `grants/<connection>`. What this version does not know may be anything. */
export function parseNews(entries: Iterable<string>): SiteNews {
  const ids = {
    sessions: new Set<string>(),
    pairings: new Set<string>(),
    grants: new Set<string>(),
    settings: new Set<string>(),
  };
  const flags = { registry: false, invites: false, all: false };
  for (const entry of entries) {
    const [kind = '', ...rest] = entry.split('/');
    if (Object.hasOwn(ids, kind)) ids[kind as keyof typeof ids].add(rest.join('/'));
    else if (kind === 'registry' || kind === 'invites') flags[kind] = true;
    else flags.all = true;
  }
  return { ...ids, ...flags };
}

/**
 * Reads what other hubs have changed since the last look. A look finds the transactions that the snapshot of the last
 * one did not show, so none is missed, however late it has ended. Rows that a copy of another server has with later
 * transactions are left out: no snapshot would ever show them.
 */
export class ChangeReader {
  readonly #hubId: string;
  /** The snapshot of the last look; null before the first one. */
  #snapshot: string | null = null;
  /** When the last look was, on the boot clock in ms. */
  #lastLook = 0;
  readonly #looks = new SerialQueue();

  constructor(hubId: string) {
    this.#hubId = hubId;
  }

  /** The next look will find everything changed. */
  forget(): void {
    this.#snapshot = null;
  }

  /**
   * Looks for changes, after the looks before.
   * @param now on the boot clock, in ms
   * @returns the news, see {@link parseNews}; {@link ANYTHING} at the first look
   */
  look(sql: Statements, now: number): Promise<readonly string[]> {
    return this.#looks.run(async () => {
      const since = now - this.#lastLook > MAX_LOOK_GAP ? null : this.#snapshot;
      const [row] = await sql.all<{ snapshot: string; changes: string[][] | null }>(
        `SELECT pg_current_snapshot()::text AS snapshot,
           (SELECT json_agg(news ORDER BY transaction_id)
            FROM changes WHERE transaction_id >= pg_snapshot_xmin($1::text::pg_snapshot)
              AND transaction_id < pg_snapshot_xmax(pg_current_snapshot())
              AND NOT pg_visible_in_snapshot(transaction_id, $1::text::pg_snapshot) AND hub <> $2) AS changes`,
        ...[since, this.#hubId],
      );
      this.#snapshot = row?.snapshot ?? null;
      this.#lastLook = now;
      return since === null ? [ANYTHING] : (row?.changes ?? []).flat();
    });
  }
}

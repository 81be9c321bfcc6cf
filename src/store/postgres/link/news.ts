import { ALL_NEWS, type SiteNews } from '../../../core/site.ts';
import { FENCE, type Notification } from '../database/database.ts';
import type { Statements } from '../database/sql.ts';

/** A hub that has not looked for this long reads everything again, in ms: shorter than rows of `changes` are kept. */
const MAX_LOOK_GAP = 3_600_000;

/** The news of a restore: a backup was restored into the site. */
export const RESTORED = 'restored';

/** The news that anything may have changed. */
export const ANYTHING = 'all';

/** News as the store hears them. */
export interface ParsedNews extends SiteNews {
  /** A backup was restored, so that everything may have changed. */
  readonly restored: boolean;
}

/** Everything may have changed. */
export const ALL_PARSED_NEWS: ParsedNews = { ...ALL_NEWS, restored: false };

/** The news of some rows, such as `grants/<connection>`. What this version does not know may be anything. */
export function parseNews(entries: Iterable<string | null>): ParsedNews {
  const ids = {
    connections: new Set<string>(),
    appliances: new Set<string>(),
    sessions: new Set<string>(),
    pairings: new Set<string>(),
    grants: new Set<string>(),
    settings: new Set<string>(),
  };
  const flags = { invites: false, restored: false, all: false };
  for (const entry of entries) {
    const [kind = '', ...rest] = (entry ?? '').split('/');
    if (Object.hasOwn(ids, kind)) ids[kind as keyof typeof ids].add(rest.join('/'));
    else if (kind === 'invites') flags.invites = true;
    else if (kind !== FENCE) flags.all = true;
    if (kind === RESTORED) flags.restored = true;
  }
  return { ...ids, ...flags };
}

function union(first: ReadonlySet<string>, second: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...first, ...second]);
}

/** Both together. */
export function mergeNews(first: ParsedNews, second: ParsedNews): ParsedNews {
  return {
    connections: union(first.connections, second.connections),
    appliances: union(first.appliances, second.appliances),
    sessions: union(first.sessions, second.sessions),
    pairings: union(first.pairings, second.pairings),
    grants: union(first.grants, second.grants),
    settings: union(first.settings, second.settings),
    invites: first.invites || second.invites,
    restored: first.restored || second.restored,
    all: first.all || second.all,
  };
}

/** Whether there is any. */
export function hasNews(news: SiteNews): boolean {
  const { connections, appliances, sessions, pairings, grants, settings, invites, all } = news;
  return invites || all || [connections, appliances, sessions, pairings, grants, settings].some((ids) => ids.size > 0);
}

/**
 * Reads what other hubs have changed since the last look. A look finds the transactions that the snapshot of the last
 * one did not show, so none is missed, however late it has ended or its notification is, or whether that comes at all.
 * Rows that a copy of another server has with later transactions are left out: no snapshot would ever show them.
 */
export class ChangeReader {
  readonly #hubId: string;
  /** The snapshot of the last look; null before the first one. */
  #snapshot: string | null = null;
  /** When the last look was, on the boot clock in ms. */
  #lastLook = 0;
  /** Ids of changes that were notified or found since the last look, and before it since the look before. */
  #known = new Set<string>();
  #knownBefore = new Set<string>();
  /** Ids of changes that are no news, and whether they were found. */
  readonly #ignored = new Map<string, boolean>();

  constructor(hubId: string) {
    this.#hubId = hubId;
  }

  /** What a notification says that is not known yet; null if a look has to find it. */
  readNotification(notification: Notification | null): ParsedNews | null {
    if (notification === null) return null;
    const { id, hub, news } = notification;
    if (hub === this.#hubId || this.#isIgnored(id) || this.#isKnown(id)) return parseNews([]);
    // Only those who may write the table can have restored a backup.
    if (news === null || news.includes(RESTORED)) return null;
    this.#known.add(id);
    return parseNews(news);
  }

  /** A change that is no news. */
  ignore(id: string): void {
    this.#ignored.set(id, false);
  }

  /** From now on it is news. @returns whether it was found before */
  stopIgnoring(id: string): boolean {
    const wasFound = this.#ignored.get(id) === true;
    this.#ignored.delete(id);
    return wasFound;
  }

  /** The next look will find everything changed. */
  forget(): void {
    this.#snapshot = null;
  }

  /**
   * Looks for changes.
   * @param now on the boot clock, in ms
   * @returns the news; `all` at the first look
   */
  async look(sql: Statements, now: number): Promise<ParsedNews> {
    const since = now - this.#lastLook > MAX_LOOK_GAP ? null : this.#snapshot;
    const [row] = await sql.all<{ snapshot: string; changes: Notification[] | null }>(
      `SELECT pg_current_snapshot()::text AS snapshot,
         (SELECT json_agg(json_build_object('id', id, 'hub', hub, 'news', news) ORDER BY transaction_id)
          FROM changes WHERE transaction_id >= pg_snapshot_xmin($1::text::pg_snapshot)
            AND transaction_id < pg_snapshot_xmax(pg_current_snapshot())
            AND NOT pg_visible_in_snapshot(transaction_id, $1::text::pg_snapshot) AND hub <> $2) AS changes`,
      ...[since, this.#hubId],
    );
    const found = (row?.changes ?? []).filter(({ id }) => !this.#isIgnored(id) && !this.#isKnown(id));
    this.#snapshot = row?.snapshot ?? null;
    this.#lastLook = now;
    this.#knownBefore = this.#known;
    this.#known = new Set(found.map(({ id }) => id));
    return since === null ? ALL_PARSED_NEWS : parseNews(found.flatMap(({ news }) => news ?? []));
  }

  #isKnown(id: string): boolean {
    return this.#known.has(id) || this.#knownBefore.has(id);
  }

  #isIgnored(id: string): boolean {
    const isIgnored = this.#ignored.has(id);
    if (isIgnored) this.#ignored.set(id, true);
    return isIgnored;
  }
}

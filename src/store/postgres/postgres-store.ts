import { rfc3339 } from '../../core/clock.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { SiteWork, StoreWatcher } from '../../core/site.ts';
import type { GrantSlot, LoginWrite, Store } from '../../core/store.ts';
import type { BackupStore, RestoredState, StoredRows } from '../backup/backup-store.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { SiteDatabase } from './database/database.ts';
import type { SiteClocks } from './link/clocks.ts';
import type { SiteLink } from './link/site-link.ts';
import { takeLease } from './link/site-state.ts';
import { readSite, restoreSite } from './site-backup.ts';
import type { SiteGrants } from './tables/grants.ts';
import { SiteInvites } from './tables/invites.ts';
import { SitePairings } from './tables/pairings.ts';
import { SiteRegistry } from './tables/registry.ts';
import { SiteHistory, SiteUsage } from './tables/reports.ts';
import { SiteSessions } from './tables/sessions.ts';
import type { SiteSettings } from './tables/settings.ts';

/** What a {@link PostgresStore} is made of. */
interface PostgresStoreParts {
  readonly database: SiteDatabase;
  readonly link: SiteLink;
  readonly sealing: Sealing;
  readonly clocks: SiteClocks;
  readonly grants: SiteGrants;
  readonly settings: SiteSettings;
  readonly hubId: string;
}

/** The store of a site: several hubs share a PostgreSQL database. */
export class PostgresStore implements Store, BackupStore, AsyncDisposable {
  readonly recoverySummary = null;
  readonly writeProblemCode = 'database_unavailable';
  readonly settings: SiteSettings;
  readonly registry: SiteRegistry;
  readonly grants: SiteGrants;
  readonly pairings: SitePairings;
  readonly sessions: SiteSessions;
  readonly invites: SiteInvites;
  readonly history: SiteHistory;
  readonly usage: SiteUsage;
  readonly site: SiteLink;
  readonly #database: SiteDatabase;
  readonly #hubId: string;
  readonly #sealing: Sealing;
  readonly #clocks: SiteClocks;

  constructor({ database, link, sealing, clocks, grants, settings, hubId }: PostgresStoreParts) {
    this.site = link;
    this.#database = database;
    this.#sealing = sealing;
    this.#clocks = clocks;
    this.#hubId = hubId;
    this.settings = settings;
    this.registry = new SiteRegistry(database, sealing, clocks, (connection) => grants.noteRemoved(connection));
    this.grants = grants;
    this.pairings = new SitePairings(database, sealing, clocks, hubId);
    this.sessions = new SiteSessions(database, sealing, clocks);
    this.invites = new SiteInvites(database, sealing, clocks);
    this.history = new SiteHistory(database);
    this.usage = new SiteUsage(database, hubId);
  }

  get writeProblem(): string | null {
    const { outage, description } = this.#database;
    return outage === null
      ? null
      : `the site's ${description} can't be used since ${rfc3339(outage.since)} (${outage.reason})`;
  }

  readAllRowsInSlices(): Promise<StoredRows> {
    return readSite(this.#database, this.#sealing);
  }

  translate<Value>(value: Value): Value {
    return this.#clocks.translate(value);
  }

  restore<Plan extends { readonly state: RestoredState }>(plan: (content: StoredRows) => Plan): Promise<Plan> {
    return restoreSite(this.#database, this.#sealing, this.#hubId, plan);
  }

  async saveLogin(connection: string, decide: (stored: GrantSlot) => LoginWrite | null): Promise<Grant | null> {
    const news = [`grants/${connection}`];
    const written = await this.#database.write(news, async (sql) => {
      const end = await this.grants.replaceAs(sql, connection, decide);
      if (end?.pairing == null) return end && { ...end, pairingRevision: 0 };
      news.push(`pairings/${end.pairing.id}`);
      const saved = await this.pairings.saveIn(sql, end.pairing, news);
      // Another hub has changed the pairing meanwhile: the tokens are kept all the same.
      return { ...end, pairingRevision: saved ?? (await this.pairings.endIn(sql, end.pairing)) };
    });
    if (written === null) return null;
    const { grant, pairing, revision, pairingRevision } = written;
    if (pairing !== null) this.pairings.noteSaved(pairing.id, pairingRevision);
    if (grant === null || revision === null) return null;
    this.grants.noteReplaced(grant, revision);
    return grant;
  }

  watch(watcher: StoreWatcher): void {
    this.site.watch(watcher);
  }

  async catchUp(): Promise<boolean> {
    await this.site.catchUp();
    return true;
  }

  holdLease(work: SiteWork): Promise<boolean> {
    return this.#database.writeIdempotently((sql) => takeLease(sql, this.#hubId, work));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.site[Symbol.asyncDispose]();
    await this.#database[Symbol.asyncDispose]();
  }
}

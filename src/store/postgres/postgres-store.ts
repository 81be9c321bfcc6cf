import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Invite } from '../../core/appliances/registration.ts';
import type { Session } from '../../core/appliances/session.ts';
import type { TokenUsage, UsageStore } from '../../core/appliances/usage.ts';
import type { Instant } from '../../core/clock.ts';
import { rfc3339 } from '../../core/clock.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import type { HistoryStore, StoredHistoryEntry } from '../../core/reports/history.ts';
import type { OwnSiteEntry, SiteHub, SiteStore, SiteWork, StoreWatcher } from '../../core/site.ts';
import type {
  AttemptStart,
  FoundGrant,
  GrantSlot,
  LoginWrite,
  RefreshAttempt,
  RegistryChange,
  Store,
  StoredGrant,
} from '../../core/store.ts';
import type { BackupStore, RestoredState, StoredRows } from '../backup/backup-store.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { SiteDatabase } from './database/database.ts';
import type { SiteClocks } from './link/clocks.ts';
import type { SiteLink } from './link/site-link.ts';
import { cleanUp, takeLease } from './link/site-state.ts';
import { SiteBackup } from './site-backup.ts';
import type { SiteGrants } from './tables/grants.ts';
import { SitePairings } from './tables/pairings.ts';
import { SiteRegistry } from './tables/registry.ts';
import { SiteReports } from './tables/reports.ts';
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
  readonly siteId: string;
}

/** The store of a site: several hubs share a PostgreSQL database. */
export class PostgresStore implements Store, HistoryStore, UsageStore, SiteStore, BackupStore, AsyncDisposable {
  readonly hubId: string;
  readonly siteId: string;
  readonly recoverySummary = null;
  readonly writeProblemCode = 'database_unavailable';
  /** It has no SD card, and the other hubs show the lines too. */
  readonly maxReportDelay = 60_000;
  readonly #database: SiteDatabase;
  readonly #link: SiteLink;
  readonly #settings: SiteSettings;
  readonly #registry: SiteRegistry;
  readonly #grants: SiteGrants;
  readonly #pairings: SitePairings;
  readonly #reports: SiteReports;
  readonly #backup: SiteBackup;

  constructor({ database, link, sealing, clocks, grants, settings, hubId, siteId }: PostgresStoreParts) {
    this.hubId = hubId;
    this.siteId = siteId;
    this.#database = database;
    this.#link = link;
    this.#settings = settings;
    this.#registry = new SiteRegistry(database, sealing, clocks);
    this.#grants = grants;
    this.#pairings = new SitePairings(database, sealing, clocks, hubId);
    this.#reports = new SiteReports(database, hubId);
    this.#backup = new SiteBackup({ database, link, sealing, clocks, hubId });
  }

  get site(): SiteStore {
    return this;
  }

  get writeProblem(): string | null {
    const { outage, description } = this.#database;
    return outage === null
      ? null
      : `the site's ${description} can't be used since ${rfc3339(outage.since)} (${outage.reason})`;
  }

  get damagedGrants(): ReadonlySet<string> {
    return this.#grants.damaged;
  }

  get damagedAppliances(): ReadonlySet<string> {
    return this.#registry.damagedAppliances;
  }

  get rejectedSessions(): ReadonlySet<string> {
    return this.#registry.rejectedSessions;
  }

  get hasRejectedInvites(): boolean {
    return this.#registry.hasRejectedInvites;
  }

  /**
   * Does nothing: history and usage have transactions of their own. Only SQLite adds them to others, to spare the SD
   * card.
   */
  setHistorySource(): void {}

  setUsageSource(): void {}

  readAllRowsInSlices(): Promise<StoredRows> {
    return this.#backup.readRows();
  }

  translate<Value>(value: Value): Value {
    return this.#backup.translate(value);
  }

  restore<Plan extends { readonly state: RestoredState }>(plan: (content: StoredRows) => Plan): Promise<Plan> {
    return this.#backup.restore(plan);
  }

  /** A hub of a site has its id outside of the store, and in the store only from a restore until it starts again. */
  async setting(name: string): Promise<string | null> {
    return (await this.#settings.read(name)) ?? (name === 'hub_id' ? this.hubId : null);
  }

  saveSetting(name: string, value: string): Promise<void> {
    return this.#settings.save({ [name]: value });
  }

  saveSettings(values: Readonly<Record<string, string>>): Promise<void> {
    return this.#settings.save(values);
  }

  settings(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return this.#settings.readAll(names);
  }

  replaceSettings(
    expected: Readonly<Record<string, string | null>>,
    values: Readonly<Record<string, string>>,
  ): Promise<boolean> {
    return this.#settings.replace(expected, values);
  }

  connections(ids?: ReadonlySet<string>): Promise<Connection[]> {
    return this.#registry.connections(ids);
  }

  appliances(ids?: ReadonlySet<string>): Promise<Appliance[]> {
    return this.#registry.appliances(ids);
  }

  async saveRegistry(change: RegistryChange): Promise<boolean> {
    const isSaved = await this.#registry.save(change);
    if (isSaved) for (const id of change.removedConnections ?? []) this.#grants.noteRemoved(id);
    return isSaved;
  }

  invites(): Promise<Invite[]> {
    return this.#registry.invites();
  }

  saveInvite(invite: Invite): Promise<void> {
    return this.#registry.saveInvite(invite);
  }

  removeInvite(hash: string): Promise<void> {
    return this.#registry.removeInvite(hash);
  }

  sessions(appliances?: ReadonlySet<string>): Promise<Session[]> {
    return this.#registry.sessions(appliances);
  }

  saveSession(session: Session): Promise<boolean> {
    return this.#registry.saveSession(session);
  }

  endSession(hash: string): Promise<boolean> {
    return this.#registry.endSession(hash);
  }

  grants(): Promise<StoredGrant[]> {
    return this.#grants.all();
  }

  grant(connection: string): Promise<StoredGrant | null> {
    return this.#grants.find(connection);
  }

  findGrants(connections: ReadonlySet<string> | null): Promise<ReadonlyMap<string, FoundGrant>> {
    return this.#grants.findMany(connections);
  }

  reconcile(grants: readonly Grant[]): Promise<void> {
    return this.#grants.reconcile(grants);
  }

  beginAttempt(grant: Parameters<Store['beginAttempt']>[0], attempt: RefreshAttempt): Promise<AttemptStart> {
    return this.#grants.beginAttempt(grant, attempt);
  }

  beginImport(...call: Parameters<Store['beginImport']>): Promise<AttemptStart> {
    return this.#grants.beginImport(...call);
  }

  endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    return this.#grants.endAttempt(grant);
  }

  markTokenRejected(connection: string, generation: number, at: Instant): Promise<boolean> {
    return this.#grants.rejectAccessToken(connection, generation, at);
  }

  replaceGrant(grant: Grant): Promise<boolean> {
    return this.#grants.replace(grant);
  }

  async saveLogin(connection: string, decide: (stored: GrantSlot) => LoginWrite | null): Promise<Grant | null> {
    const news = [`grants/${connection}`];
    const written = await this.#database.write(news, async (sql) => {
      const end = await this.#grants.replaceAs(sql, connection, decide);
      if (end?.pairing == null) return end && { ...end, pairingRevision: 0 };
      news.push(`pairings/${end.pairing.id}`);
      const saved = await this.#pairings.saveIn(sql, end.pairing, news);
      // Another hub has changed the pairing meanwhile: the tokens are kept all the same.
      return { ...end, pairingRevision: saved ?? (await this.#pairings.endIn(sql, end.pairing)) };
    });
    if (written === null) return null;
    const { grant, pairing, revision, pairingRevision } = written;
    if (pairing !== null) this.#pairings.noteSaved(pairing.id, pairingRevision);
    if (grant === null || revision === null) return null;
    this.#grants.noteReplaced(grant, revision);
    return grant;
  }

  async forgetGrant(connection: string, generation?: number): Promise<GrantSlot> {
    let slot: GrantSlot = { generation: 0, grant: null };
    const revision = await this.#database.write([`grants/${connection}`], async (sql) => {
      slot = await this.#grants.slotIn(sql, connection);
      return this.#grants.clearIn(sql, connection, generation ?? slot.generation);
    });
    if (revision !== null) this.#grants.noteCleared(connection, revision);
    return slot;
  }

  pairings(ids?: ReadonlySet<string>): Promise<Pairing[]> {
    return this.#pairings.all(ids);
  }

  savePairing(pairing: Pairing): Promise<boolean> {
    return this.#pairings.save(pairing);
  }

  takePairing(pairing: string, urgent: boolean): Promise<Pairing | null> {
    return this.#pairings.take(pairing, urgent);
  }

  keepPairings(pairings: readonly string[]): Promise<readonly string[]> {
    return this.#pairings.keep(pairings);
  }

  history(connection: string): Promise<StoredHistoryEntry[]> {
    return this.#reports.history(connection);
  }

  addHistory(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    return this.#reports.addHistory(lines);
  }

  usage(): Promise<ReadonlyMap<string, TokenUsage>> {
    return this.#reports.usage();
  }

  usageOfOthers(): Promise<ReadonlyMap<string, readonly TokenUsage[]>> {
    return this.#reports.usageOfOthers();
  }

  saveUsage(usage: ReadonlyMap<string, TokenUsage>): Promise<void> {
    return this.#reports.saveUsage(usage);
  }

  get hubs(): readonly SiteHub[] {
    return this.#link.hubs;
  }

  watch(watcher: StoreWatcher): void {
    this.#link.watch(watcher);
  }

  async catchUp(): Promise<boolean> {
    await this.#link.catchUp();
    return true;
  }

  announce(entry: OwnSiteEntry): void {
    this.#link.announce(entry);
  }

  holdLease(work: SiteWork): Promise<boolean> {
    return this.#database.writeIdempotently((sql) => takeLease(sql, this.hubId, work));
  }

  removeHub(id: string): Promise<void> {
    return this.#link.removeHub(id);
  }

  cleanUp(): Promise<void> {
    return this.#database.writeIdempotently(cleanUp);
  }

  startupDone(): Promise<void> {
    return this.#link.unlockStartup();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#link[Symbol.asyncDispose]();
    await this.#database[Symbol.asyncDispose]();
  }
}

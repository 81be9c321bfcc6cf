import type { Appliance } from '../core/appliance.ts';
import type { Instant, Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { HistoryLine, HistoryStore, WaitingHistory } from '../core/history.ts';
import type { Pairing } from '../core/pairing.ts';
import type { Invite } from '../core/registration.ts';
import type { Session } from '../core/session.ts';
import type { Attempt, Store, StoredGrant } from '../core/store.ts';
import { systemTimers } from '../system/clock.ts';
import { ApplianceTable } from './appliance-table.ts';
import { Ballast } from './ballast.ts';
import type { OpenedDatabase } from './database.ts';
import { GrantTable } from './grant-table.ts';
import { GroupCommit } from './group-commit.ts';
import { HistoryTable } from './history-table.ts';
import { PairingTable } from './pairing-table.ts';
import { reseal } from './resealing.ts';
import { type GrantRow, grantRow, pairingRow, readGrant, readPairing } from './rows.ts';
import { type Salvage, type SettingRow, salvage } from './salvage.ts';
import type { Sealing } from './sealing.ts';
import { SessionTable } from './session-table.ts';
import { SettingTable } from './setting-table.ts';
import { Sql } from './sql.ts';
import type { StoreFiles } from './store-files.ts';

/** A state that takes the place of another. */
export interface NewState {
  readonly settings: readonly SettingRow[];
  /** Appliances to be added. */
  readonly appliances: readonly Appliance[];
  /** Ids of appliances to be removed. */
  readonly unpaired: ReadonlySet<string>;
  readonly grants: readonly GrantRow[];
  /** Sessions of before, each appliance's oldest first. */
  readonly sessions: readonly Session[];
  /** The generation of each appliance's grant that this was made for. */
  readonly generations: ReadonlyMap<string, number>;
}

/**
 * The store of one hub: SQLite in `latchkey.db`, WAL with `synchronous=FULL`, so that what was committed outlives a
 * power cut. It is locked as long as it is open: two hubs must not live on one family of tokens.
 */
export class SqliteStore implements Store, HistoryStore, Disposable {
  readonly files: StoreFiles;
  readonly #ballast: Ballast;
  readonly #reopen: (sealing: Sealing) => Promise<OpenedDatabase>;
  readonly #damagedGrants = new Set<string>();
  readonly #sql: Sql;
  readonly #settings: SettingTable;
  readonly #appliances: ApplianceTable;
  readonly #sessions: SessionTable;
  readonly #grants: GrantTable;
  readonly #pairings: PairingTable;
  readonly #history: HistoryTable;
  readonly #commits: GroupCommit;
  #opened: OpenedDatabase;
  #sealing: Sealing;
  #paired: () => void = () => undefined;

  /** @param reopen opens it anew, for one that can't be written for now */
  constructor(
    files: StoreFiles,
    opened: OpenedDatabase,
    reopen: (sealing: Sealing) => Promise<OpenedDatabase>,
    timers: Timers = systemTimers,
  ) {
    this.files = files;
    this.#opened = opened;
    this.#sealing = opened.sealing;
    this.#reopen = reopen;
    this.#ballast = new Ballast(files.ballast);
    this.#sql = new Sql(opened.database, files.database);
    const present = () => this.#sealing;
    this.#settings = new SettingTable(this.#sql, present);
    this.#appliances = new ApplianceTable(this.#sql, present);
    this.#sessions = new SessionTable(this.#sql, present);
    this.#grants = new GrantTable(this.#sql);
    this.#pairings = new PairingTable(this.#sql);
    this.#history = new HistoryTable(this.#sql);
    this.#commits = new GroupCommit(this.#sql, this.#history, timers);
  }

  /** What its rows are sealed and signed with. */
  get sealing(): Sealing {
    return this.#sealing;
  }

  /** Why nothing can be written, and all is served from memory; null where it can. */
  get unwritable(): string | null {
    return this.#opened.unwritable;
  }

  /** What was put in place of a damaged database, in one sentence; null where nothing was. */
  get recovered(): string | null {
    return this.#opened.recovered;
  }

  /** Whether the daily copy is sealed with another key than the database. */
  get copyIsDated(): boolean {
    return this.#opened.copyIsDated;
  }

  /** Appliances whose grant is on disk and can't be read: nothing but another pairing brings it back. */
  get damagedGrants(): ReadonlySet<string> {
    return this.#damagedGrants;
  }

  /** Appliances that can't prove who they are, because their credentials can't be read: remove and add them again. */
  get damagedAppliances(): ReadonlySet<string> {
    return this.#appliances.damaged;
  }

  /** Ids of the appliances of which a session was found that the hub has not given; it is forgotten. */
  get refusedSessions(): ReadonlySet<string> {
    return this.#sessions.refused;
  }

  /** Whether an invite was found that the hub has not made; it is forgotten. */
  get refusedInvites(): boolean {
    return this.#appliances.refusedInvites;
  }

  /** Calls `paired` whenever a pairing has brought a grant. */
  whenPaired(paired: () => void): void {
    this.#paired = paired;
  }

  /** From now on what waits to be written of an appliance's history goes with whatever else is written of it. */
  takeHistoryFrom(waiting: WaitingHistory): void {
    this.#commits.takeHistoryFrom(waiting);
  }

  /** How many rows were changed since it was opened. */
  get changes(): number {
    return this.#sql.get<{ changes: number }>('SELECT total_changes() AS changes')?.changes ?? 0;
  }

  /** All rows as they are at one moment. */
  content(): Salvage {
    return salvage(this.#opened.database, [this.#sealing]);
  }

  /**
   * Puts another state over this one, all of it or nothing.
   * @returns false, having changed nothing, where the grants are not of `generations` any more
   */
  putState({ settings, appliances, unpaired, grants, sessions, generations }: NewState): boolean {
    return this.#sql.transaction(() => {
      if (!this.#grants.areOf(generations)) return false;
      for (const id of unpaired) this.#appliances.remove(id);
      for (const row of settings) this.#settings.put(row);
      for (const appliance of appliances) {
        if (this.#appliances.insert(appliance)) continue;
        throw new Failure('appliance_exists', `there are two appliances of the name or client_id of ${appliance.name}`);
      }
      for (const row of grants) this.#grants.put(row);
      this.#sessions.addOlder(sessions);
      return true;
    });
  }

  /**
   * Copies the whole database to another file, and then moves the journal to the database: so a database that has less
   * than its copy has lost something.
   */
  async copyDatabase(path: string): Promise<void> {
    await this.#opened.database.backup(path);
    this.emptyJournal();
  }

  /**
   * Seals and signs everything anew, all of it or nothing, and whatever is written from now on. What was changed by somebody
   * else, or can't be opened, stays so.
   * @throws Failure `store_unwritable`, `store_unreadable` where the database is damaged; nothing has changed then
   */
  reseal(sealing: Sealing): void {
    this.#sql.transaction(() => reseal(this.#opened.database, this.files.database, this.#sealing, sealing));
    this.#sealing = sealing;
  }

  /** Writes the database anew, so that nothing of before is left in room that it does not use. */
  compact(): void {
    this.#sql.guarded(() => this.#opened.database.exec('VACUUM'));
    this.emptyJournal();
  }

  /** Moves the journal to the database: nothing that was written, or was to be, is left in it. */
  emptyJournal(): void {
    this.#sql.guarded(() => this.#opened.database.pragma('wal_checkpoint(TRUNCATE)'));
  }

  /**
   * Looks whether a store that could not be written can be now.
   * @returns whether it can
   * @throws Failure as the store is opened
   */
  async tryToWrite(): Promise<boolean> {
    if (this.#opened.unwritable === null) return true;
    const before = this.#opened;
    const opened = await this.#reopen(this.#sealing);
    this.#opened = { ...opened, recovered: opened.recovered ?? before.recovered };
    this.#sql.use(opened.database);
    before.database.close();
    return opened.unwritable === null;
  }

  [Symbol.dispose](): void {
    this.#opened.database.close();
  }

  async setting(name: string): Promise<string | null> {
    return this.#settings.read(name, this.unwritable === null);
  }

  async saveSetting(name: string, value: string): Promise<void> {
    this.#settings.save(name, value);
  }

  async saveSettings(values: Readonly<Record<string, string>>): Promise<void> {
    this.#sql.transaction(() => {
      for (const [name, value] of Object.entries(values)) this.#settings.save(name, value);
    });
  }

  async appliances(): Promise<Appliance[]> {
    return this.#appliances.all();
  }

  async addAppliance(appliance: Appliance, invite?: string): Promise<boolean> {
    return this.#appliances.add(appliance, invite);
  }

  async changeAppliance(appliance: Appliance): Promise<boolean> {
    return this.#appliances.change(appliance);
  }

  async removeAppliance(appliance: string): Promise<void> {
    this.#commits.expectNoMore(appliance);
    this.#appliances.remove(appliance);
  }

  async invites(): Promise<Invite[]> {
    return this.#appliances.invites();
  }

  async saveInvite(invite: Invite): Promise<void> {
    this.#appliances.saveInvite(invite);
  }

  async removeInvite(hash: string): Promise<void> {
    this.#appliances.removeInvite(hash);
  }

  async sessions(): Promise<Session[]> {
    return this.#sessions.all();
  }

  async saveSession(session: Session): Promise<boolean> {
    return this.#sessions.save(session);
  }

  async endSession(hash: string): Promise<boolean> {
    return this.#sessions.end(hash);
  }

  async grants(): Promise<StoredGrant[]> {
    return this.#grants.all().flatMap((row) => this.#readGrant(row) ?? []);
  }

  async grant(appliance: string): Promise<StoredGrant | null> {
    const row = this.#grants.one(appliance);
    return row === undefined ? null : this.#readGrant(row);
  }

  async generation(appliance: string): Promise<number> {
    return this.#grants.generation(appliance);
  }

  async beginAttempt(grant: Parameters<Store['beginAttempt']>[0], attempt: Attempt): Promise<boolean> {
    this.#sql.guarded(() => this.#ballast.keep());
    const begun = await this.#commits.join(grant.appliance, () => this.#grants.beginAttempt(grant, attempt));
    if (begun) this.#commits.expect(grant.appliance);
    return begun;
  }

  async endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    this.#commits.expectNoMore(grant.appliance);
    return this.#commits.join(grant.appliance, () => this.#grants.endAttempt(grant));
  }

  async distrust(appliance: string, generation: number, at: Instant): Promise<boolean> {
    return this.#grants.distrust(appliance, generation, at);
  }

  async replaceGrant(grant: Grant): Promise<boolean> {
    const replace = () => this.#grants.replace(grantRow(grant, this.#sealing));
    this.#commits.expectNoMore(grant.appliance);
    return this.#commits.join(grant.appliance, replace, () => this.#withBallast(replace));
  }

  async forgetGrant(appliance: string, generation: number): Promise<boolean> {
    this.#damagedGrants.delete(appliance);
    this.#commits.expectNoMore(appliance);
    return this.#sql.transaction(() => {
      if (!this.#grants.forget(appliance, generation)) return false;
      this.#sessions.endAll(appliance);
      return true;
    });
  }

  async pairings(): Promise<Pairing[]> {
    return this.#pairings.all().flatMap((row) => unlessDamaged(() => readPairing(row, this.#sealing)) ?? []);
  }

  async savePairing(pairing: Pairing): Promise<void> {
    if (pairing.step.kind === 'exchanging') this.#sql.guarded(() => this.#ballast.keep());
    const put = () => this.#pairings.put(pairingRow(pairing, this.#sealing));
    this.#commits.write(pairing.appliance, put, () => this.#sql.transaction(put));
  }

  async concludePairing(pairing: Pairing, grant: Grant): Promise<boolean> {
    const conclude = () => {
      if (!this.#grants.replace(grantRow(grant, this.#sealing))) return false;
      this.#pairings.put(pairingRow(pairing, this.#sealing));
      return true;
    };
    const concluded = this.#commits.write(grant.appliance, conclude, () =>
      this.#withBallast(() => this.#sql.transaction(conclude)),
    );
    this.#commits.expectNoMore(grant.appliance);
    if (concluded) this.#paired();
    return concluded;
  }

  async history(appliance: string): Promise<HistoryLine[]> {
    return this.#history.of(appliance);
  }

  async addHistory(lines: ReadonlyMap<string, readonly HistoryLine[]>): Promise<void> {
    this.#sql.transaction(() => {
      for (const [appliance, added] of lines) this.#history.add(appliance, added);
    });
  }

  /** A grant that can't be read costs its appliance a pairing, and no other appliance anything. */
  #readGrant(row: GrantRow): StoredGrant | null {
    const grant = unlessDamaged(() => readGrant(row, this.#sealing));
    if (grant === null) this.#damagedGrants.add(row.appliance);
    else this.#damagedGrants.delete(row.appliance);
    return grant;
  }

  /** Writes tokens that the portal gives only once: on a full disk the ballast makes room for them. */
  #withBallast<Result>(write: () => Result): Result {
    try {
      return write();
    } catch {
      this.#ballast.giveUp();
      return write();
    }
  }
}

function unlessDamaged<Row>(read: () => Row): Row | null {
  try {
    return read();
  } catch (error) {
    if (error instanceof Failure) return null;
    throw error;
  }
}

import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Invite } from '../../core/appliances/registration.ts';
import type { Session } from '../../core/appliances/session.ts';
import type { PendingUsage, TokenUsage, UsageStore } from '../../core/appliances/usage.ts';
import type { Instant, Timers } from '../../core/clock.ts';
import type { Connection } from '../../core/connections/connection.ts';
import { Failure } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { Pairing } from '../../core/pairings/pairing.ts';
import type { HistoryStore, PendingHistory, StoredHistoryEntry } from '../../core/reports/history.ts';
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
import { systemTimers } from '../../system/clock.ts';
import type { BackupStore, RestoredState, StoredRows } from '../backup/backup-store.ts';
import type { Sealing } from '../keys/sealing.ts';
import { Ballast, type StoreFiles } from '../store-files.ts';
import { isDiskFull, type OpenedDatabase } from './database.ts';
import { DatabaseFile } from './database-file.ts';
import { GrantTable } from './tables/grant-table.ts';
import { PairingTable } from './tables/pairing-table.ts';
import { ApplianceTable, ConnectionTable, InviteTable, RegistryTables } from './tables/registry-tables.ts';
import { type Companion, Companions, HistoryTable, UsageTable } from './tables/report-tables.ts';
import { SessionTable } from './tables/session-table.ts';
import { SettingTable } from './tables/setting-table.ts';

/** The store of one hub. */
export class SqliteStore extends DatabaseFile implements Store, HistoryStore, UsageStore, BackupStore {
  /** A hub on SQLite is alone. */
  readonly site = null;
  readonly writeProblemCode = 'store_unwritable';
  readonly maxReportDelay = 3_600_000;
  readonly #ballast: Ballast;
  readonly #settings: SettingTable;
  readonly #connections: ConnectionTable;
  readonly #appliances: ApplianceTable;
  readonly #invites: InviteTable;
  readonly #registry: RegistryTables;
  readonly #sessions: SessionTable;
  readonly #grants: GrantTable;
  readonly #pairings: PairingTable;
  readonly #history: HistoryTable;
  readonly #usage: UsageTable;
  readonly #companions: Companions;
  #pairedListener: () => void = () => undefined;

  /** @param reopen as {@link DatabaseFile} */
  constructor(
    files: StoreFiles,
    opened: OpenedDatabase,
    reopen: (sealing: Sealing) => Promise<OpenedDatabase>,
    timers: Timers = systemTimers,
  ) {
    super(files, opened, reopen, timers);
    this.#ballast = new Ballast(files.ballast);
    this.#settings = new SettingTable(this.sql);
    this.#connections = new ConnectionTable(this.sql);
    this.#appliances = new ApplianceTable(this.sql);
    this.#invites = new InviteTable(this.sql);
    this.#registry = new RegistryTables(this.sql, this.#connections, this.#appliances, this.#invites);
    this.#sessions = new SessionTable(this.sql);
    this.#grants = new GrantTable(this.sql);
    this.#pairings = new PairingTable(this.sql);
    this.#history = new HistoryTable(this.sql);
    this.#usage = new UsageTable(this.sql);
    this.#companions = new Companions(this.#history, this.#usage);
  }

  /** Ids of connections whose grant on disk can't be read: only a new pairing solves this. */
  get damagedGrants(): ReadonlySet<string> {
    return this.#grants.damaged;
  }

  /** Ids of appliances that can't authenticate, because their credentials can't be read: remove and add them again. */
  get damagedAppliances(): ReadonlySet<string> {
    return this.#appliances.damaged;
  }

  /** Ids of the appliances with a session that the hub has not issued; such sessions are rejected. */
  get rejectedSessions(): ReadonlySet<string> {
    return this.#sessions.rejected;
  }

  /** Whether an invite was found, and rejected, that the hub has not issued. */
  get hasRejectedInvites(): boolean {
    return this.#invites.hasRejected;
  }

  /** Calls `paired` after every pairing that has led to a grant. */
  onPaired(paired: () => void): void {
    this.#pairedListener = paired;
  }

  /** From now on the pending history of a connection is written together with its other writes. */
  setHistorySource(pending: PendingHistory): void {
    this.#companions.historySource = pending;
  }

  /** The same for the pending usage of its appliances. */
  setUsageSource(pending: PendingUsage): void {
    this.#companions.usageSource = pending;
  }

  /**
   * Applies a restore, all of it or nothing.
   * @param plan derives it from all rows as they are at that moment
   */
  restore<Plan extends { readonly state: RestoredState }>(plan: (content: StoredRows) => Plan): Promise<Plan> {
    return this.commits.exclusively(() => {
      const planned = plan(this.readAllRows());
      this.#applyRestoredState(planned.state);
      return planned;
    });
  }

  #applyRestoredState(state: RestoredState): void {
    this.sql.transaction(() => {
      // A connection may be replaced by one with the same id, which its appliances go on using.
      this.sql.run('PRAGMA defer_foreign_keys = ON');
      for (const id of state.removedAppliances) this.#appliances.remove(id);
      for (const id of state.removedConnections) this.#connections.remove(id);
      for (const [name, value] of state.settings) this.#settings.save(name, value);
      for (const connection of state.connections) {
        if (this.#connections.add(connection)) continue;
        throw new Failure('appliance_exists', `two connections have the name of ${connection.name}`);
      }
      for (const appliance of state.movedAppliances) this.#appliances.update(appliance);
      for (const appliance of state.appliances) {
        if (this.#appliances.add(appliance)) continue;
        throw new Failure('appliance_exists', `two appliances have the name or client_id of ${appliance.name}`);
      }
      for (const grant of state.grants) this.#grants.overwrite(grant);
      this.#sessions.addOlder(state.sessions);
    });
    this.#appliances.clearDamaged(state.removedAppliances);
  }

  /** Instants of this boot and of former ones are all that a hub alone knows. */
  translate<Value>(value: Value): Value {
    return value;
  }

  async setting(name: string): Promise<string | null> {
    return this.#settings.read(name);
  }

  saveSetting(name: string, value: string): Promise<void> {
    return this.saveSettings({ [name]: value });
  }

  saveSettings(values: Readonly<Record<string, string>>): Promise<void> {
    return this.commits.writeNow(null, () => {
      for (const [name, value] of Object.entries(values)) this.#settings.save(name, value);
    });
  }

  async settings(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return new Map(
      names.flatMap((name) => {
        const value = this.#settings.read(name);
        return value === null ? [] : [[name, value]];
      }),
    );
  }

  replaceSettings(
    expected: Readonly<Record<string, string | null>>,
    values: Readonly<Record<string, string>>,
  ): Promise<boolean> {
    return this.commits.writeNow(null, () => {
      if (Object.entries(expected).some(([name, value]) => this.#settings.read(name) !== value)) return false;
      for (const [name, value] of Object.entries(values)) this.#settings.save(name, value);
      return true;
    });
  }

  watch(): void {}

  async catchUp(): Promise<boolean> {
    return false;
  }

  async holdLease(): Promise<boolean> {
    return true;
  }

  async appliances(ids?: ReadonlySet<string>): Promise<Appliance[]> {
    return this.#appliances.all().filter(({ id }) => ids?.has(id) ?? true);
  }

  async connections(ids?: ReadonlySet<string>): Promise<Connection[]> {
    return this.#connections.all().filter(({ id }) => ids?.has(id) ?? true);
  }

  async saveRegistry(change: RegistryChange): Promise<boolean> {
    const { removedAppliances = [], removedConnections = [] } = change;
    for (const id of removedConnections) this.commits.stopExpecting(id);
    const isWritten = await this.commits.writeNow(null, () => this.#registry.tryChange(change), {
      onUnsynced: (isApplied) => {
        if (isApplied) this.#registry.withdrawAdded(change);
      },
    });
    if (!isWritten) return false;
    this.#appliances.clearDamaged(removedAppliances);
    return true;
  }

  async invites(): Promise<Invite[]> {
    const invites = this.#invites.all();
    await this.#removeRejected(this.#invites);
    return invites;
  }

  saveInvite(invite: Invite): Promise<void> {
    return this.commits.writeNow(null, () => this.#invites.save(invite));
  }

  async removeInvite(hash: string): Promise<void> {
    await this.commits.writeNow(null, () => this.#invites.remove(hash));
  }

  async sessions(appliances?: ReadonlySet<string>): Promise<Session[]> {
    const sessions = this.#sessions.all();
    await this.#removeRejected(this.#sessions);
    return sessions.filter(({ appliance }) => appliances?.has(appliance) ?? true);
  }

  saveSession(session: Session): Promise<boolean> {
    return this.commits.writeNow(null, () => this.#sessions.save(session));
  }

  endSession(hash: string): Promise<boolean> {
    return this.commits.writeNow(null, () => this.#sessions.end(hash));
  }

  async grants(): Promise<StoredGrant[]> {
    return this.#grants.all();
  }

  async grant(connection: string): Promise<StoredGrant | null> {
    return this.#grants.find(connection);
  }

  async findGrants(connections: ReadonlySet<string> | null): Promise<ReadonlyMap<string, FoundGrant>> {
    const stored =
      connections === null ? this.#grants.all() : [...connections].flatMap((id) => this.#grants.find(id) ?? []);
    return new Map(stored.map((one) => [one.grant.connection, { stored: one, mayHaveLostWrites: false }]));
  }

  async reconcile(): Promise<void> {}

  beginAttempt(grant: Parameters<Store['beginAttempt']>[0], attempt: RefreshAttempt): Promise<AttemptStart> {
    return this.#begin(grant.connection, () => this.#grants.beginAttempt(grant, attempt));
  }

  beginImport(
    connection: string,
    create: (generation: number) => Grant,
    attempt: RefreshAttempt,
  ): Promise<AttemptStart> {
    let added: Grant | null = null;
    const write = () => {
      const { generation, grant } = this.#grants.slot(connection);
      added = grant === null ? create(generation + 1) : null;
      return added !== null && this.#grants.replace(added) && this.#grants.beginAttempt(added, attempt);
    };
    // Otherwise a later write would leave a refresh token that was never sent, and belongs to another program.
    const onUnsynced = (isWritten: boolean) => {
      if (isWritten && added !== null) this.#grants.clear(connection, added.generation);
    };
    return this.#begin(connection, write, { onUnsynced });
  }

  async #begin(
    connection: string,
    write: () => boolean,
    options: { readonly onUnsynced?: (isWritten: boolean) => void } = {},
  ): Promise<AttemptStart> {
    await this.#reserveBallast();
    if (!(await this.commits.enqueue(connection, write, options))) return { kind: 'superseded' };
    this.commits.expectWrite(connection);
    return { kind: 'begun', sendBefore: null };
  }

  endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    this.commits.stopExpecting(grant.connection);
    return this.commits.enqueue(grant.connection, () => this.#grants.endAttempt(grant));
  }

  markTokenRejected(connection: string, generation: number, at: Instant): Promise<boolean> {
    return this.commits.writeNow(null, () => this.#grants.rejectAccessToken(connection, generation, at));
  }

  replaceGrant(grant: Grant): Promise<boolean> {
    this.commits.stopExpecting(grant.connection);
    const replace = () => this.#grants.replace(grant);
    return this.commits.enqueue(grant.connection, replace, { alone: () => this.#retryWithoutBallast(replace) });
  }

  async saveLogin(connection: string, decide: (stored: GrantSlot) => LoginWrite | null): Promise<Grant | null> {
    const write = (): LoginWrite | null => {
      const end = decide(this.#grants.slot(connection));
      if (end === null || (end.grant !== null && !this.#grants.replace(end.grant))) return null;
      if (end.pairing !== null) this.#pairings.save(end.pairing);
      return end;
    };
    const end = await this.commits.writeNow(connection, write, { alone: () => this.#retryWithoutBallast(write) });
    if (end?.grant == null) return null;
    this.commits.stopExpecting(connection);
    if (end.pairing !== null) this.#pairedListener();
    return end.grant;
  }

  forgetGrant(connection: string, generation?: number): Promise<GrantSlot> {
    this.commits.stopExpecting(connection);
    return this.commits.writeNow(null, () => {
      const slot = this.#grants.slot(connection);
      this.#grants.clear(connection, generation ?? slot.generation);
      return slot;
    });
  }

  async pairings(ids?: ReadonlySet<string>): Promise<Pairing[]> {
    return this.#pairings.all(ids);
  }

  async takePairing(pairing: string): Promise<Pairing | null> {
    const [stored] = await this.pairings(new Set([pairing]));
    return stored ?? null;
  }

  async keepPairings(): Promise<readonly string[]> {
    return [];
  }

  async savePairing(pairing: Pairing): Promise<boolean> {
    if (pairing.step.kind === 'exchanging') await this.#reserveBallast();
    await this.commits.writeNow(pairing.connection, () => {
      if (this.#connections.has(pairing.connection)) this.#pairings.save(pairing);
    });
    return true;
  }

  async history(connection: string): Promise<StoredHistoryEntry[]> {
    return this.#history.list(connection);
  }

  addHistory(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    return this.commits.writeNow(null, () => {
      for (const [connection, added] of lines) this.#history.add(connection, added);
    });
  }

  async usageOfOthers(): Promise<ReadonlyMap<string, readonly TokenUsage[]>> {
    return new Map();
  }

  async usage(): Promise<ReadonlyMap<string, TokenUsage>> {
    return this.#usage.all();
  }

  saveUsage(usage: ReadonlyMap<string, TokenUsage>): Promise<void> {
    return this.commits.writeNow(null, () => this.#usage.save(usage));
  }

  protected companionsOf(connection: string): readonly Companion[] {
    return this.#companions.of(connection);
  }

  /** In the queue, because nothing may be written between two steps of a checkpoint. */
  async #removeRejected(table: SessionTable | InviteTable): Promise<void> {
    if (!table.hasRowsToRemove) return;
    // The next read tries it again.
    await this.commits.writeNow(null, () => table.removeRejected()).catch(() => undefined);
  }

  async #reserveBallast(): Promise<void> {
    try {
      await this.#ballast.reserve();
    } catch (error) {
      throw this.sql.toFailure(error);
    }
  }

  /** Writes tokens that the portal issues only once. On a full disk, deleting the ballast makes room for them. */
  #retryWithoutBallast<Result>(write: () => Result): Result {
    try {
      return this.sql.transaction(write);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      this.#ballast.release();
      return this.sql.transaction(write);
    }
  }
}

import type { Appliance } from '../core/appliances/appliance.ts';
import type { Invite } from '../core/appliances/registration.ts';
import type { Session } from '../core/appliances/session.ts';
import type { PendingUsage, TokenUsage, UsageStore } from '../core/appliances/usage.ts';
import type { Instant, Timers } from '../core/clock.ts';
import type { Connection } from '../core/connections/connection.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grants/grant.ts';
import type { Pairing } from '../core/pairings/pairing.ts';
import type { HistoryStore, PendingHistory, StoredHistoryEntry } from '../core/reports/history.ts';
import type { RefreshAttempt, RegistryChange, Store, StoredGrant } from '../core/store.ts';
import { systemTimers } from '../system/clock.ts';
import { Companions } from './database/companions.ts';
import type { OpenedDatabase } from './database/database.ts';
import { DatabaseFile } from './database/database-file.ts';
import { GroupCommit } from './database/group-commit.ts';
import type { StoreFiles } from './database/store-files.ts';
import { Ballast } from './database/store-files.ts';
import type { Sealing } from './keys/sealing.ts';
import { ApplianceTable } from './rows/appliance-table.ts';
import { ConnectionTable } from './rows/connection-table.ts';
import { GrantTable } from './rows/grant-table.ts';
import { HistoryTable } from './rows/history-table.ts';
import { InviteTable } from './rows/invite-table.ts';
import { PairingTable } from './rows/pairing-table.ts';
import { SessionTable } from './rows/session-table.ts';
import { SettingTable } from './rows/setting-table.ts';
import { UsageTable } from './rows/usage-table.ts';

/** The changes that a restore makes. */
export interface RestoredState {
  readonly settings: ReadonlyMap<string, string>;
  /** Connections and appliances to be added, after those with the ids below were removed. */
  readonly connections: readonly Connection[];
  readonly appliances: readonly Appliance[];
  readonly removedConnections: ReadonlySet<string>;
  readonly removedAppliances: ReadonlySet<string>;
  /** Appliances that get another connection. */
  readonly movedAppliances: readonly Appliance[];
  readonly grants: readonly Grant[];
  /** Sessions of the backup, each appliance's oldest first. */
  readonly sessions: readonly Session[];
}

/** The store of one hub. */
export class SqliteStore extends DatabaseFile implements Store, HistoryStore, UsageStore {
  readonly #ballast: Ballast;
  readonly #settings: SettingTable;
  readonly #connections: ConnectionTable;
  readonly #appliances: ApplianceTable;
  readonly #invites: InviteTable;
  readonly #sessions: SessionTable;
  readonly #grants: GrantTable;
  readonly #pairings: PairingTable;
  readonly #history: HistoryTable;
  readonly #usage: UsageTable;
  readonly #companions: Companions;
  readonly #groupCommit: GroupCommit;
  #pairedListener: () => void = () => undefined;

  /** @param reopen as {@link DatabaseFile} */
  constructor(
    files: StoreFiles,
    opened: OpenedDatabase,
    reopen: (sealing: Sealing) => Promise<OpenedDatabase>,
    timers: Timers = systemTimers,
  ) {
    super(files, opened, reopen);
    this.#ballast = new Ballast(files.ballast);
    this.#settings = new SettingTable(this.sql);
    this.#connections = new ConnectionTable(this.sql);
    this.#appliances = new ApplianceTable(this.sql);
    this.#invites = new InviteTable(this.sql);
    this.#sessions = new SessionTable(this.sql);
    this.#grants = new GrantTable(this.sql);
    this.#pairings = new PairingTable(this.sql);
    this.#history = new HistoryTable(this.sql);
    this.#usage = new UsageTable(this.sql);
    this.#companions = new Companions(this.#history, this.#usage);
    this.#groupCommit = new GroupCommit(this.sql, (connection) => this.#companions.of(connection), timers);
  }

  /** Ids of connections whose grant on disk can't be read: only a new pairing solves this. */
  get damagedGrants(): ReadonlySet<string> {
    return this.#grants.damaged;
  }

  /**
   * Ids of connections whose entries were changed without the store key, or can't be read. They are used as they are,
   * with the origin `added`, until they are written again.
   */
  get damagedConnections(): ReadonlySet<string> {
    return this.#connections.damaged;
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

  /** Applies a restore, all of it or nothing. */
  applyRestoredState(state: RestoredState): void {
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
    this.#connections.clearDamaged(state.removedConnections);
  }

  async setting(name: string): Promise<string | null> {
    return this.#settings.read(name);
  }

  async saveSetting(name: string, value: string): Promise<void> {
    this.#settings.save(name, value);
  }

  async saveSettings(values: Readonly<Record<string, string>>): Promise<void> {
    this.sql.transaction(() => {
      for (const [name, value] of Object.entries(values)) this.#settings.save(name, value);
    });
  }

  async appliances(): Promise<Appliance[]> {
    return this.#appliances.all();
  }

  async connections(): Promise<Connection[]> {
    return this.#connections.all();
  }

  async saveRegistry(change: RegistryChange): Promise<boolean> {
    const { updatedConnections = [], removedAppliances = [], removedConnections = [] } = change;
    for (const id of removedConnections) this.#groupCommit.stopExpecting(id);
    const conflict = new Failure('unexpected', 'the store has changed meanwhile');
    try {
      this.sql.transaction(() => {
        if (!this.#applyRegistryChange(change)) throw conflict;
      });
    } catch (error) {
      if (error === conflict) return false;
      throw error;
    }
    this.#appliances.clearDamaged(removedAppliances);
    this.#connections.clearDamaged([...updatedConnections.map(({ id }) => id), ...removedConnections]);
    return true;
  }

  async invites(): Promise<Invite[]> {
    return this.#invites.all();
  }

  async saveInvite(invite: Invite): Promise<void> {
    this.#invites.save(invite);
  }

  async removeInvite(hash: string): Promise<void> {
    this.#invites.remove(hash);
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
    return this.#grants.all();
  }

  async grant(connection: string): Promise<StoredGrant | null> {
    return this.#grants.find(connection);
  }

  async generation(connection: string): Promise<number> {
    return this.#grants.generation(connection);
  }

  async beginAttempt(grant: Parameters<Store['beginAttempt']>[0], attempt: RefreshAttempt): Promise<boolean> {
    this.sql.wrapErrors(() => this.#ballast.reserve());
    const begun = await this.#groupCommit.enqueue(grant.connection, () => this.#grants.beginAttempt(grant, attempt));
    if (begun) this.#groupCommit.expectWrite(grant.connection);
    return begun;
  }

  async endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    this.#groupCommit.stopExpecting(grant.connection);
    return this.#groupCommit.enqueue(grant.connection, () => this.#grants.endAttempt(grant));
  }

  async markTokenRejected(connection: string, generation: number, at: Instant): Promise<boolean> {
    return this.#grants.rejectAccessToken(connection, generation, at);
  }

  async replaceGrant(grant: Grant): Promise<boolean> {
    const replace = () => this.#grants.replace(grant);
    this.#groupCommit.stopExpecting(grant.connection);
    return this.#groupCommit.enqueue(grant.connection, replace, () => this.#retryWithoutBallast(replace));
  }

  async forgetGrant(connection: string, generation: number): Promise<boolean> {
    this.#groupCommit.stopExpecting(connection);
    return this.sql.transaction(() => {
      if (!this.#grants.clear(connection, generation)) return false;
      this.#sessions.endAll(connection);
      return true;
    });
  }

  async pairings(): Promise<Pairing[]> {
    return this.#pairings.all();
  }

  async savePairing(pairing: Pairing): Promise<void> {
    if (pairing.step.kind === 'exchanging') this.sql.wrapErrors(() => this.#ballast.reserve());
    const save = () => this.#pairings.save(pairing);
    this.#groupCommit.writeNow(pairing.connection, save, () => this.sql.transaction(save));
  }

  async completePairing(pairing: Pairing, grant: Grant): Promise<boolean> {
    const complete = () => {
      if (!this.#grants.replace(grant)) return false;
      this.#pairings.save(pairing);
      return true;
    };
    const isCompleted = this.#groupCommit.writeNow(grant.connection, complete, () =>
      this.#retryWithoutBallast(() => this.sql.transaction(complete)),
    );
    this.#groupCommit.stopExpecting(grant.connection);
    if (isCompleted) this.#pairedListener();
    return isCompleted;
  }

  async history(connection: string): Promise<StoredHistoryEntry[]> {
    return this.#history.list(connection);
  }

  async addHistory(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    this.sql.transaction(() => {
      for (const [connection, added] of lines) this.#history.add(connection, added);
    });
  }

  async usage(): Promise<ReadonlyMap<string, TokenUsage>> {
    return this.#usage.all();
  }

  async saveUsage(usage: ReadonlyMap<string, TokenUsage>): Promise<void> {
    this.sql.transaction(() => this.#usage.save(usage));
  }

  /** @returns false if a part of the change is not possible; the caller must roll back the parts before it */
  #applyRegistryChange(change: RegistryChange): boolean {
    const { removedConnections = [], usedInvite } = change;
    const isWritten =
      (change.addedConnections ?? []).every((connection) => this.#connections.add(connection)) &&
      (change.updatedConnections ?? []).every((connection) => this.#connections.update(connection)) &&
      (change.addedAppliances ?? []).every((appliance) => this.#appliances.add(appliance)) &&
      (change.updatedAppliances ?? []).every((appliance) => this.#appliances.update(appliance));
    for (const id of change.removedAppliances ?? []) this.#appliances.remove(id);
    if (!isWritten || removedConnections.some((id) => this.#connections.isUsed(id))) return false;
    for (const id of removedConnections) this.#connections.remove(id);
    return usedInvite === undefined || this.#invites.remove(usedInvite);
  }

  /** Writes tokens that the portal issues only once. On a full disk, deleting the ballast makes room for them. */
  #retryWithoutBallast<Result>(write: () => Result): Result {
    try {
      return write();
    } catch {
      this.#ballast.release();
      return write();
    }
  }
}

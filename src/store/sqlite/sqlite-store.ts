import type { UsageStore } from '../../core/appliances/usage.ts';
import type { Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { HistoryStore } from '../../core/reports/history.ts';
import type {
  AttemptStart,
  GrantSlot,
  GrantStore,
  InviteStore,
  LoginWrite,
  PairingStore,
  RegistryStore,
  SessionStore,
  SettingStore,
  Store,
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
export class SqliteStore extends DatabaseFile implements Store, BackupStore {
  /** A hub on SQLite is alone. */
  readonly site = null;
  readonly writeProblemCode = 'store_unwritable';
  readonly #ballast: Ballast;
  readonly #settings = new SettingTable(this.sql);
  readonly #connections = new ConnectionTable(this.sql);
  readonly #appliances = new ApplianceTable(this.sql);
  readonly #invites = new InviteTable(this.sql);
  readonly #registry = new RegistryTables(this.sql, this.#connections, this.#appliances, this.#invites);
  readonly #sessions = new SessionTable(this.sql);
  readonly #grants = new GrantTable(this.sql);
  readonly #pairings = new PairingTable(this.sql);
  readonly #history = new HistoryTable(this.sql);
  readonly #usage = new UsageTable(this.sql);
  readonly #companions = new Companions(this.#history, this.#usage);
  #pairedListener: () => void = () => undefined;

  readonly settings: SettingStore = {
    get: async (name) => this.#settings.read(name),
    getAll: async (names) =>
      new Map(
        names.flatMap((name) => {
          const value = this.#settings.read(name);
          return value === null ? [] : [[name, value]];
        }),
      ),
    save: (values) => this.commits.writeNow(null, () => this.#settings.save(values)),
    replace: (expected, values) =>
      this.commits.writeNow(null, () => {
        if (Object.entries(expected).some(([name, value]) => this.#settings.read(name) !== value)) return false;
        this.#settings.save(values);
        return true;
      }),
  };

  readonly registry: RegistryStore = {
    damagedAppliances: this.#appliances.damaged,
    connections: async () => this.#connections.all(),
    appliances: async () => this.#appliances.all(),
    save: async (change) => {
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
    },
  };

  readonly grants: GrantStore = {
    damaged: this.#grants.damaged,
    all: async () => this.#grants.all(),
    get: async (connection) => this.#grants.find(connection),
    find: async (connections) => {
      const stored =
        connections === null ? this.#grants.all() : [...connections].flatMap((id) => this.#grants.find(id) ?? []);
      return new Map(stored.map((one) => [one.grant.connection, { stored: one, hasLostWrites: false }]));
    },
    reconcile: async () => {},
    beginAttempt: (grant, attempt) => this.#begin(grant.connection, () => this.#grants.beginAttempt(grant, attempt)),
    beginImport: (connection, create, attempt) => {
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
    },
    endAttempt: (grant) => {
      this.commits.stopExpecting(grant.connection);
      return this.commits.enqueue(grant.connection, () => this.#grants.endAttempt(grant));
    },
    rejectAccessToken: (connection, generation, at) =>
      this.commits.writeNow(null, () => this.#grants.rejectAccessToken(connection, generation, at)),
    replace: (grant) => {
      this.commits.stopExpecting(grant.connection);
      const replace = () => this.#grants.replace(grant);
      return this.commits.enqueue(grant.connection, replace, { alone: () => this.#retryWithoutBallast(replace) });
    },
    forget: (connection, generation) => {
      this.commits.stopExpecting(connection);
      return this.commits.writeNow(null, () => {
        const slot = this.#grants.slot(connection);
        this.#grants.clear(connection, generation ?? slot.generation);
        return slot;
      });
    },
  };

  readonly pairings: PairingStore = {
    all: async (ids) => this.#pairings.all(ids),
    take: async (pairing) => this.#pairings.all(new Set([pairing]))[0] ?? null,
    keep: async () => [],
    save: async (pairing) => {
      if (pairing.step.kind === 'exchanging') await this.#reserveBallast();
      await this.commits.writeNow(pairing.connection, () => {
        if (this.#connections.has(pairing.connection)) this.#pairings.save(pairing);
      });
      return true;
    },
  };

  readonly sessions: SessionStore = {
    rejected: this.#sessions.rejected,
    all: async (appliances) => {
      const sessions = this.#sessions.all();
      await this.#removeRejected(this.#sessions);
      return sessions.filter(({ appliance }) => appliances?.has(appliance) ?? true);
    },
    save: (session) => this.commits.writeNow(null, () => this.#sessions.save(session)),
    end: (hash) => this.commits.writeNow(null, () => this.#sessions.end(hash)),
  };

  readonly invites: InviteStore = {
    rejected: this.#invites.rejected,
    all: async () => {
      const invites = this.#invites.all();
      await this.#removeRejected(this.#invites);
      return invites;
    },
    save: (invite) => this.commits.writeNow(null, () => this.#invites.save(invite)),
    remove: async (hash) => void (await this.commits.writeNow(null, () => this.#invites.remove(hash))),
  };

  readonly history: HistoryStore = {
    maxDelay: 3_600_000,
    lines: async (connection) => this.#history.list(connection),
    add: (lines) =>
      this.commits.writeNow(null, () => {
        for (const [connection, added] of lines) this.#history.add(connection, added);
      }),
    setSource: (pending) => {
      this.#companions.historySource = pending;
    },
  };

  readonly usage: UsageStore = {
    own: async () => this.#usage.all(),
    ofOthers: async () => new Map(),
    save: (usage) => this.commits.writeNow(null, () => this.#usage.save(usage)),
    setSource: (pending) => {
      this.#companions.usageSource = pending;
    },
  };

  /** @param reopen as {@link DatabaseFile} */
  constructor(
    files: StoreFiles,
    opened: OpenedDatabase,
    reopen: (sealing: Sealing) => Promise<OpenedDatabase>,
    timers: Timers = systemTimers,
  ) {
    super(files, opened, reopen, timers);
    this.#ballast = new Ballast(files.ballast);
  }

  /** Calls `paired` after every pairing that has led to a grant. */
  onPaired(paired: () => void): void {
    this.#pairedListener = paired;
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

  watch(): void {}

  async catchUp(): Promise<boolean> {
    return false;
  }

  async holdLease(): Promise<boolean> {
    return true;
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
      this.#settings.save(Object.fromEntries(state.settings));
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

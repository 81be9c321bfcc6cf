import type { Appliance } from '../core/appliances/appliance.ts';
import type { Invite } from '../core/appliances/registration.ts';
import type { Session } from '../core/appliances/session.ts';
import type { Instant, Timers } from '../core/clock.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grants/grant.ts';
import type { Pairing } from '../core/pairings/pairing.ts';
import type { HistoryStore, PendingHistory, StoredHistoryEntry } from '../core/reports/history.ts';
import type { RefreshAttempt, Store, StoredGrant } from '../core/store.ts';
import { systemTimers } from '../system/clock.ts';
import type { OpenedDatabase } from './database/database.ts';
import { DatabaseFile } from './database/database-file.ts';
import { GroupCommit } from './database/group-commit.ts';
import type { StoreFiles } from './database/store-files.ts';
import { Ballast } from './database/store-files.ts';
import type { Sealing } from './keys/sealing.ts';
import { ApplianceTable } from './rows/appliance-table.ts';
import { GrantTable } from './rows/grant-table.ts';
import { HistoryTable } from './rows/history-table.ts';
import { InviteTable } from './rows/invite-table.ts';
import { PairingTable } from './rows/pairing-table.ts';
import { SessionTable } from './rows/session-table.ts';
import { SettingTable } from './rows/setting-table.ts';

/** The changes that a restore makes. */
export interface RestoredState {
  readonly settings: ReadonlyMap<string, string>;
  /** Appliances to be added. */
  readonly appliances: readonly Appliance[];
  /** Ids of appliances to be removed. */
  readonly removed: ReadonlySet<string>;
  readonly grants: readonly Grant[];
  /** Sessions of the backup, each appliance's oldest first. */
  readonly sessions: readonly Session[];
}

/** The store of one hub. */
export class SqliteStore extends DatabaseFile implements Store, HistoryStore {
  readonly #ballast: Ballast;
  readonly #settings: SettingTable;
  readonly #appliances: ApplianceTable;
  readonly #invites: InviteTable;
  readonly #sessions: SessionTable;
  readonly #grants: GrantTable;
  readonly #pairings: PairingTable;
  readonly #history: HistoryTable;
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
    this.#appliances = new ApplianceTable(this.sql);
    this.#invites = new InviteTable(this.sql);
    this.#sessions = new SessionTable(this.sql);
    this.#grants = new GrantTable(this.sql);
    this.#pairings = new PairingTable(this.sql);
    this.#history = new HistoryTable(this.sql);
    this.#groupCommit = new GroupCommit(this.sql, this.#history, timers);
  }

  /** Appliances whose grant on disk can't be read: only a new pairing solves this. */
  get damagedGrants(): ReadonlySet<string> {
    return this.#grants.damaged;
  }

  /** Appliances that can't authenticate, because their credentials can't be read: remove and add them again. */
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

  /** From now on the pending history of an appliance is written together with its other writes. */
  setHistorySource(pending: PendingHistory): void {
    this.#groupCommit.setHistorySource(pending);
  }

  /** Applies a restore, all of it or nothing. */
  applyRestoredState({ settings, appliances, removed, grants, sessions }: RestoredState): void {
    this.sql.transaction(() => {
      for (const id of removed) this.#appliances.remove(id);
      for (const [name, value] of settings) this.#settings.save(name, value);
      for (const appliance of appliances) {
        if (this.#appliances.add(appliance)) continue;
        throw new Failure('appliance_exists', `two appliances have the name or client_id of ${appliance.name}`);
      }
      for (const grant of grants) this.#grants.overwrite(grant);
      this.#sessions.addOlder(sessions);
    });
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

  async addAppliance(appliance: Appliance, invite?: string): Promise<boolean> {
    if (invite === undefined) return this.#appliances.add(appliance);
    return this.sql.transaction(() => {
      if (!this.#invites.has(invite) || !this.#appliances.add(appliance)) return false;
      this.#invites.remove(invite);
      return true;
    });
  }

  async updateAppliance(appliance: Appliance): Promise<boolean> {
    return this.#appliances.update(appliance);
  }

  async removeAppliance(appliance: string): Promise<void> {
    this.#groupCommit.stopExpecting(appliance);
    this.#appliances.remove(appliance);
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

  async grant(appliance: string): Promise<StoredGrant | null> {
    return this.#grants.find(appliance);
  }

  async generation(appliance: string): Promise<number> {
    return this.#grants.generation(appliance);
  }

  async beginAttempt(grant: Parameters<Store['beginAttempt']>[0], attempt: RefreshAttempt): Promise<boolean> {
    this.sql.wrapErrors(() => this.#ballast.reserve());
    const begun = await this.#groupCommit.enqueue(grant.appliance, () => this.#grants.beginAttempt(grant, attempt));
    if (begun) this.#groupCommit.expectWrite(grant.appliance);
    return begun;
  }

  async endAttempt(grant: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    this.#groupCommit.stopExpecting(grant.appliance);
    return this.#groupCommit.enqueue(grant.appliance, () => this.#grants.endAttempt(grant));
  }

  async markTokenRejected(appliance: string, generation: number, at: Instant): Promise<boolean> {
    return this.#grants.rejectAccessToken(appliance, generation, at);
  }

  async replaceGrant(grant: Grant): Promise<boolean> {
    const replace = () => this.#grants.replace(grant);
    this.#groupCommit.stopExpecting(grant.appliance);
    return this.#groupCommit.enqueue(grant.appliance, replace, () => this.#retryWithoutBallast(replace));
  }

  async forgetGrant(appliance: string, generation: number): Promise<boolean> {
    this.#groupCommit.stopExpecting(appliance);
    return this.sql.transaction(() => {
      if (!this.#grants.clear(appliance, generation)) return false;
      this.#sessions.endAll(appliance);
      return true;
    });
  }

  async pairings(): Promise<Pairing[]> {
    return this.#pairings.all();
  }

  async savePairing(pairing: Pairing): Promise<void> {
    if (pairing.step.kind === 'exchanging') this.sql.wrapErrors(() => this.#ballast.reserve());
    const save = () => this.#pairings.save(pairing);
    this.#groupCommit.writeNow(pairing.appliance, save, () => this.sql.transaction(save));
  }

  async completePairing(pairing: Pairing, grant: Grant): Promise<boolean> {
    const complete = () => {
      if (!this.#grants.replace(grant)) return false;
      this.#pairings.save(pairing);
      return true;
    };
    const isCompleted = this.#groupCommit.writeNow(grant.appliance, complete, () =>
      this.#retryWithoutBallast(() => this.sql.transaction(complete)),
    );
    this.#groupCommit.stopExpecting(grant.appliance);
    if (isCompleted) this.#pairedListener();
    return isCompleted;
  }

  async history(appliance: string): Promise<StoredHistoryEntry[]> {
    return this.#history.list(appliance);
  }

  async addHistory(lines: ReadonlyMap<string, readonly StoredHistoryEntry[]>): Promise<void> {
    this.sql.transaction(() => {
      for (const [appliance, added] of lines) this.#history.add(appliance, added);
    });
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

import type { Appliance } from './appliances/appliance.ts';
import type { Invite } from './appliances/registration.ts';
import type { Session } from './appliances/session.ts';
import type { Instant } from './clock.ts';
import type { Connection } from './connections/connection.ts';
import type { Grant } from './grants/grant.ts';
import type { Pairing } from './pairings/pairing.ts';
import type { SiteWork, StoreWatcher } from './site.ts';

/** A refresh that was written ahead, so that the hub knows after a crash that it may have been sent. */
export interface RefreshAttempt {
  /** The SHA-256 of the refresh token, base64url: the attempt is about this refresh token only. */
  readonly token: string;
  readonly at: Instant;
  /**
   * On a site: another hub has begun it, and may send the refresh token and use the answer until this moment, on this
   * hub's boot clock in ms. Left out if this hub has begun it.
   */
  readonly leasedUntil?: number;
}

/** Whether a refresh may be sent. Times are ms on the boot clock. */
export type AttemptStart =
  /**
   * It is written ahead. On a site it may be sent before `sendBefore`, and not later; null if there is no such limit.
   */
  | { readonly kind: 'begun'; readonly sendBefore: number | null }
  /** The store has another generation, or another hub has begun and ended an attempt since the grant was read. */
  | { readonly kind: 'superseded' }
  /**
   * Another hub's attempt has not ended, see {@link RefreshAttempt.leasedUntil}; or another hub may still write what a
   * replaced server has lost of the grant.
   */
  | { readonly kind: 'under_way'; readonly until: number };

/** Changes of connections and appliances. Connections are added before appliances, and removed after them. */
export interface RegistryChange {
  readonly addedConnections?: readonly Connection[];
  readonly updatedConnections?: readonly Connection[];
  readonly addedAppliances?: readonly Appliance[];
  /** Replace the records of appliances. */
  readonly updatedAppliances?: readonly Appliance[];
  /** Ids of appliances; each is removed with its sessions. */
  readonly removedAppliances?: readonly string[];
  /** Ids of connections; each is removed with its grant, its pairings and its history. */
  readonly removedConnections?: readonly string[];
  /** The hash of the invite that was used, which is removed too. */
  readonly usedInvite?: string;
}

/** A stored grant with its open refresh attempt; null if there is none. */
export interface StoredGrant {
  readonly grant: Grant;
  readonly attempt: RefreshAttempt | null;
}

/** A grant as it is stored now: another hub of a site may have changed it. */
export interface FoundGrant {
  readonly stored: StoredGrant;
  /**
   * After a standby was promoted or a copy restored: the database has an older version than this hub knows.
   */
  readonly hasLostWrites: boolean;
}

/** What a store has for the grant of a connection. */
export interface GrantSlot {
  /** That of the last grant, even if it was deleted; 0 if there never was one. */
  readonly generation: number;
  /** Null if there is none, or it can't be read. */
  readonly grant: Grant | null;
}

/** What the end of a login writes: its grant, and its pairing if it has one. Null: that is left as it is. */
export interface LoginWrite {
  readonly grant: Grant | null;
  readonly pairing: Pairing | null;
}

/** The hub's settings, such as its id. They are sealed. */
export interface SettingStore {
  /** Null if it is not set. */
  get(name: string): Promise<string | null>;
  /** Several as they are at one moment, by name; those that are not set are left out. */
  getAll(names: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Saves settings, by name, in one transaction. */
  save(values: Readonly<Record<string, string>>): Promise<void>;
  /**
   * Saves several in one transaction, unless another hub of a site has changed what the caller has read.
   * @param expected what was read: values by name, null for those that were not set
   * @returns false if one of them has another value; nothing has changed then
   */
  replace(
    expected: Readonly<Record<string, string | null>>,
    values: Readonly<Record<string, string>>,
  ): Promise<boolean>;
}

/** The connections and the appliances. */
export interface RegistryStore {
  /** Ids of appliances that can't authenticate, because their entry can't be read: remove and add them again. */
  readonly damagedAppliances: ReadonlySet<string>;
  connections(): Promise<Connection[]>;
  appliances(): Promise<Appliance[]>;
  /**
   * Writes changes in one transaction, all of them or none.
   * @returns false if a name or a client_id is taken, something to be replaced no longer exists, a connection to be
   * removed is still in use, or the invite no longer exists
   */
  save(change: RegistryChange): Promise<boolean>;
}

/** The grants and their refresh attempts. */
export interface GrantStore {
  /** Ids of connections whose grant can't be read: only a new pairing solves this. */
  readonly damaged: ReadonlySet<string>;
  all(): Promise<StoredGrant[]>;
  /** @param connection its id, as below */
  get(connection: string): Promise<StoredGrant | null>;
  /** The grants as they are stored now, by connection. @param connections their ids; null for all */
  find(connections: ReadonlySet<string> | null): Promise<ReadonlyMap<string, FoundGrant>>;
  /**
   * Compares grants, as this hub holds them, with the database of a site, and writes those again that it has lost. What
   * it has not lost stays. The store of one hub loses nothing.
   */
  reconcile(grants: readonly Grant[]): Promise<void>;
  /**
   * Writes a refresh ahead, together with the grant's doubt, which may not be on disk yet. On a site not if another hub
   * has found that the portal refuses the token, and `refused` does not say so yet.
   */
  beginAttempt(
    grant: Pick<Grant, 'connection' | 'generation' | 'doubt' | 'refused'>,
    attempt: RefreshAttempt,
  ): Promise<AttemptStart>;
  /**
   * Adds a grant to a connection without one, and writes the attempt that uses its refresh token ahead in the same
   * transaction: no other hub may use it in between.
   * @param create the grant, with the generation after this one
   * @returns `superseded` if the connection has a grant, or was removed
   */
  beginImport(
    connection: string,
    create: (generation: number) => Grant,
    attempt: RefreshAttempt,
  ): Promise<AttemptStart>;
  /** Ends the open refresh attempt without new tokens, and saves what followed from it. */
  endAttempt(grant: Pick<Grant, 'connection' | 'generation' | 'doubt' | 'refused' | 'misconfigured'>): Promise<boolean>;
  /** Marks the access token of this generation as rejected, so that the hub never issues it again. */
  rejectAccessToken(connection: string, generation: number, at: Instant): Promise<boolean>;
  /**
   * Replaces the grant with generation `grant.generation - 1`.
   * @returns whether the store has the grant, perhaps since an earlier call; false if it has another generation, or the
   * connection was removed
   */
  replace(grant: Grant): Promise<boolean>;
  /**
   * Deletes a grant, also one that can't be read.
   * @param generation only this one is deleted; left out: whatever the store has
   * @returns what the store had then
   */
  forget(connection: string, generation?: number): Promise<GrantSlot>;
}

/** The pairings: the open ones, and the last few ended ones of each connection. */
export interface PairingStore {
  /** In the order in which they began. @param ids left out: all of them */
  all(ids?: ReadonlySet<string>): Promise<Pairing[]>;
  /**
   * Becomes the hub that runs a pairing, its owner; on a site not if another hub whose lease has not ended exchanges its
   * code.
   * @param pairing its id
   * @param urgent true: somebody waits, so another owner is replaced; false: only one whose lease has ended
   * @returns the pairing as it is stored; null if it has another owner still, or was removed
   */
  take(pairing: string, urgent: boolean): Promise<Pairing | null>;
  /** Prolongs the ownership of open pairings. @returns the ids of those that another hub has taken */
  keep(pairings: readonly string[]): Promise<readonly string[]>;
  /**
   * Saves nothing if the connection was removed: its pairings were removed with it.
   * @returns false if another hub has changed the pairing since this one read or wrote it
   */
  save(pairing: Pairing): Promise<boolean>;
}

/** The sessions of appliances. */
export interface SessionStore {
  /** Ids of the appliances with a session that the hub has not issued; such sessions are rejected. */
  readonly rejected: ReadonlySet<string>;
  /** The oldest first. @param appliances ids; left out: the sessions of all */
  all(appliances?: ReadonlySet<string>): Promise<Session[]>;
  /**
   * Saves a session, and replaces one of the same device flow; only the newest few of each appliance and connection are
   * kept.
   * @returns false if its appliance no longer exists
   */
  save(session: Session): Promise<boolean>;
  /** @param hash of its refresh token. @returns false if there is no such session */
  end(hash: string): Promise<boolean>;
}

/** The invites. */
export interface InviteStore {
  /** The hashes of those that were found, and rejected, because the hub has not issued them. */
  readonly rejected: ReadonlySet<string>;
  all(): Promise<Invite[]>;
  save(invite: Invite): Promise<void>;
  /** @param hash of its token */
  remove(hash: string): Promise<void>;
}

/**
 * The store of everything that must survive a power cut. A write that resolves is on disk. Another process may use the
 * same store, so every write of a grant names the generation that it replaces. If the store has another generation, the
 * write changes nothing and resolves with false.
 *
 * Every method rejects with a Failure `store_unwritable` or `store_unreadable`.
 */
export interface Store {
  readonly settings: SettingStore;
  readonly registry: RegistryStore;
  readonly grants: GrantStore;
  readonly pairings: PairingStore;
  readonly sessions: SessionStore;
  readonly invites: InviteStore;
  /**
   * Writes the end of a login in one transaction: nobody else writes the grant between what `decide` reads and what it
   * says.
   * @param decide what is written, of the next generation; null for nothing. It may be called again.
   * @returns the grant that was written; null if none was, also because the connection was removed
   */
  saveLogin(connection: string, decide: (stored: GrantSlot) => LoginWrite | null): Promise<Grant | null>;

  /** Tells `watcher` what other hubs of a site do. A hub alone has nothing to tell. */
  watch(watcher: StoreWatcher): void;
  /**
   * Looks at once for what other hubs of a site have changed, and resolves when watchers have been told.
   * @returns false if there can be no other hub
   */
  catchUp(): Promise<boolean>;
  /**
   * Takes or keeps a lease for some work, until 30 s after this call. A hub alone has all of them.
   * @returns false if another hub has it
   */
  holdLease(work: SiteWork): Promise<boolean>;
}

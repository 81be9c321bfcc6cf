import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Session } from '../../core/appliances/session.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { SiteStore } from '../../core/site.ts';
import type { Store } from '../../core/store.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { GrantRow } from '../rows/grant-row.ts';
import type { ApplianceRow, ConnectionRow } from '../rows/registry-rows.ts';
import type { SessionRow } from '../rows/session-row.ts';
import type { SettingRow } from '../rows/setting-row.ts';

/** The rows of a store that a backup contains, as they were at one moment. */
export interface StoredRows {
  /** What they are sealed with. */
  readonly sealing: Sealing;
  /** On a site without those that belong to one hub. */
  readonly settings: ReadonlyMap<string, SettingRow>;
  readonly connections: readonly ConnectionRow[];
  readonly appliances: readonly ApplianceRow[];
  readonly grants: ReadonlyMap<string, GrantRow>;
  /** In the order of their numbers. Only sessions that the hub has issued. */
  readonly sessions: readonly SessionRow[];
  /** Rows whose content can't be opened or is invalid, such as `grants/<connection>`. */
  readonly unreadable: ReadonlySet<string>;
}

/** The changes that a restore makes. */
export interface RestoredState {
  /** A site keeps the settings that belong to one hub; the hub that restores takes over `hub_id` if no other has it. */
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

/** A store of which backups are made, and into which they are restored. */
export interface BackupStore extends Pick<Store, 'settings'> {
  /** Null if the hub has no site: its id is a setting of the store then. */
  readonly site: SiteStore | null;
  /** All rows as they were at one moment. The store's key may be replaced while they are read. */
  readAllRowsInSlices(): Promise<StoredRows>;
  /** What a row contains, with its instants as this hub knows them best. */
  translate<Value>(value: Value): Value;
  /**
   * Applies a restore, all of it or nothing. On a site every hub must start again after it: see `StoreWatcher.restored`.
   * @param plan derives it from all rows as they are at that moment; it may be called again
   * @throws Failure `appliance_exists` if two connections or appliances of the result have the same name or client_id;
   *   `not_allowed` if another hub restores a backup; `store_unwritable`, and what `plan` throws
   */
  restore<Plan extends { readonly state: RestoredState }>(plan: (content: StoredRows) => Plan): Promise<Plan>;
}

import type { Appliance } from '../../core/appliances/appliance.ts';
import type { Session } from '../../core/appliances/session.ts';
import type { Connection } from '../../core/connections/connection.ts';
import type { Grant } from '../../core/grants/grant.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { ApplianceRow } from '../rows/appliance-row.ts';
import type { ConnectionRow } from '../rows/connection-row.ts';
import type { GrantRow } from '../rows/grant-row.ts';
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
export interface BackupStore {
  /** All rows as they were when it was called. The store's key may be replaced while they are read. */
  readAllRowsInSlices(): Promise<StoredRows>;
  /**
   * Applies a restore, all of it or nothing.
   * @param plan derives it from all rows as they are at that moment; it may be called again
   */
  restore<Plan extends { readonly state: RestoredState }>(plan: (content: StoredRows) => Plan): Promise<Plan>;
}

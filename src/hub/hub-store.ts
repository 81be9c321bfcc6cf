import type { BrokerStore } from '../broker/ports.ts';
import type { BackupStore } from '../store/backup/backup-store.ts';
import type { KeyRotation } from '../store/sqlite/key-rotation.ts';
import type { SqliteStore } from '../store/sqlite/sqlite-store.ts';

/** The store of a hub: SQLite in its state directory, or the database of its site. */
export interface HubStore extends BrokerStore, BackupStore {}

/** What only a hub on SQLite has: the files of its store, and the key that it can replace. */
export interface LocalStore {
  readonly store: SqliteStore;
  readonly keyRotation: KeyRotation;
  /** Why nothing in the state directory outlives a reboot; null if it does. */
  readonly volatileReason: string | null;
}

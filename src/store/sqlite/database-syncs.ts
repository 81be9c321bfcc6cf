import {
  closeSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  read,
  readFileSync,
  write,
  writeSync,
} from 'node:fs';
import { promisify } from 'node:util';
import type Database from 'better-sqlite3';
import { restoreKeptWal, type StoreFiles, syncPath } from '../store-files.ts';

const datasync = promisify(fdatasync);
const readAt = promisify(read);
const writeAt = promisify(write);

/**
 * Syncs a database in libuv's thread pool. SQLite would sync it in the thread that called it, which also answers the
 * appliances, and on a worn SD card a sync takes seconds. So SQLite only writes ({@link unsynced}), and this class makes
 * the syncs that SQLite leaves out, in the same order. Between a write and its sync nothing else may be written:
 * {@link CommitQueue} sees to that. Everything that is written in another way is synced by SQLite, as usual.
 */
export class DatabaseSyncs {
  readonly #database: Database.Database;
  readonly #files: StoreFiles;
  readonly #main: SyncedFile;
  readonly #wal: SyncedFile;
  #isDirectorySynced = false;
  /** Whether the next commit would overwrite a WAL that could not be emptied: SQLite then syncs in between. */
  #overwritesWal = false;

  constructor(files: StoreFiles, database: Database.Database) {
    this.#files = files;
    this.#database = database;
    this.#main = new SyncedFile(files.database);
    this.#wal = new SyncedFile(files.wal);
  }

  /** Whether everything that was written is also on disk. */
  get isComplete(): boolean {
    return this.#main.isSynced && this.#wal.isSynced;
  }

  /** Bytes of the WAL; 0 before the first {@link complete}. */
  get walBytes(): number {
    return this.#wal.bytes;
  }

  /** Runs a transaction without a sync; {@link complete} must follow before its result counts. */
  commit<Result>(work: () => Result): Result {
    this.#wal.markWritten();
    return this.#overwritesWal ? work() : this.#unsynced(work);
  }

  /**
   * Syncs what was written. If that failed before, the file is written again first.
   * @throws the file system's error
   */
  async complete(): Promise<void> {
    await this.#main.sync();
    await this.#wal.sync();
    if (this.#isDirectorySynced) return;
    // SQLite creates the WAL when it opens the database.
    await syncPath(this.#files.directory);
    this.#isDirectorySynced = true;
  }

  /**
   * Moves the WAL to the database. The WAL is emptied only when the database is on disk, and used again only when it is
   * empty on disk: an older page that it still had could otherwise replace a newer one after a power cut.
   * @throws the error of SQLite or of the file system; nothing is lost then
   */
  async checkpoint(): Promise<void> {
    await this.complete();
    this.#main.markWritten();
    // From now on SQLite may begin the WAL anew, also if the sync of the database fails.
    this.#overwritesWal = true;
    this.#unsynced(() => this.#database.pragma('wal_checkpoint(PASSIVE)'));
    await this.#main.sync();
    this.#wal.markWritten();
    this.#database.pragma('wal_checkpoint(TRUNCATE)');
    await this.#wal.sync();
    this.#overwritesWal = false;
  }

  /** The bytes of the database file, without the WAL. Call it only while nothing moves the WAL to it. */
  readDatabase(): Promise<Buffer> {
    return this.#main.readAll();
  }

  /** Closes the database. SQLite syncs the WAL, moves what is left in it, and deletes it; if it is still needed, it is kept. */
  close(): void {
    try {
      this.#wal.redirty();
      this.#main.syncNow();
    } catch {
      this.#keepWal();
    }
    this.#database.close();
    restoreKeptWal(this.#files);
    // Not earlier: closing any descriptor of a file ends all of the process's locks on it.
    this.#main.close();
    this.#wal.close();
  }

  #keepWal(): void {
    try {
      linkSync(this.#files.wal, this.#files.keptWal);
    } catch {
      // There is no WAL, or nothing can be written any more.
    }
  }

  #unsynced<Result>(work: () => Result): Result {
    this.#database.exec('PRAGMA synchronous = OFF');
    try {
      return work();
    } finally {
      this.#database.exec('PRAGMA synchronous = FULL');
    }
  }
}

/** A file that SQLite writes, with a descriptor of our own to sync it. */
class SyncedFile {
  readonly #path: string;
  #descriptor: number | null = null;
  #state: 'synced' | 'written' | 'failed' = 'synced';

  constructor(path: string) {
    this.#path = path;
  }

  get isSynced(): boolean {
    return this.#state === 'synced';
  }

  get bytes(): number {
    return this.#descriptor === null ? 0 : fstatSync(this.#descriptor).size;
  }

  markWritten(): void {
    if (this.#state === 'synced') this.#state = 'written';
  }

  async sync(): Promise<void> {
    if (this.#state === 'synced') return;
    try {
      // After an error the kernel takes the pages for clean, although they are not on disk: the next sync would succeed.
      if (this.#state === 'failed') await this.#rewrite();
      await datasync(this.#open());
      this.#state = 'synced';
    } catch (error) {
      this.#state = 'failed';
      throw error;
    }
  }

  /** Writes it again if a sync has failed, so that the next sync covers all of it. */
  redirty(): void {
    if (this.#state !== 'failed') return;
    const bytes = readFileSync(this.#open());
    writeSync(this.#open(), bytes, 0, bytes.length, 0);
  }

  syncNow(): void {
    if (this.#state === 'synced') return;
    this.redirty();
    fsyncSync(this.#open());
  }

  async readAll(): Promise<Buffer> {
    const bytes = Buffer.alloc(fstatSync(this.#open()).size);
    for (let at = 0; at < bytes.length; ) {
      const { bytesRead } = await readAt(this.#open(), bytes, at, bytes.length - at, at);
      if (bytesRead === 0) break;
      at += bytesRead;
    }
    return bytes;
  }

  close(): void {
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  async #rewrite(): Promise<void> {
    const bytes = await this.readAll();
    for (let at = 0; at < bytes.length; ) {
      const { bytesWritten } = await writeAt(this.#open(), bytes, at, bytes.length - at, at);
      at += bytesWritten;
    }
  }

  #open(): number {
    this.#descriptor ??= openSync(this.#path, 'r+');
    return this.#descriptor;
  }
}

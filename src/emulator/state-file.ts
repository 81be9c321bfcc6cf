import { closeSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import type { AuthorizationCode } from './oauth/authorization-codes.ts';
import type { MisuseRecord } from './oauth/client-audit.ts';
import type { DeviceLogin } from './oauth/device-logins.ts';
import type { HelperFlow } from './oauth/helper-flows.ts';
import type { IssuedGrant } from './oauth/issued-grants.ts';
import type { RegisteredClient } from './settings/client-registry.ts';

/** The state that survives a restart, as it is in JSON. */
export interface PersistedState {
  /** The generated client, if none was configured. */
  readonly client: { readonly id: string; readonly secret: string | null };
  readonly registered: readonly RegisteredClient[];
  /** The private CA: its certificate and its key, PEM. */
  readonly authority: { readonly certificate: string; readonly key: string };
  /** The keys that sign states and tokens, base64url. */
  readonly stateKey: string;
  readonly tokenKey: string;
  /** The private keys of JWTs, PEM, the newest first; null if there is none yet. */
  readonly signingKey: string | null;
  /** Offset of the clock, in seconds. */
  readonly clockOffset: number;
  readonly grants: readonly IssuedGrant[];
  readonly codes: readonly AuthorizationCode[];
  readonly runs: readonly HelperFlow[];
  readonly misuses: readonly MisuseRecord[];
  readonly devices: readonly DeviceLogin[];
}

/** A state file that can't be used. The message names the file and says what to do. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError';
}

/** Identifies a SQLite file as the emulator's: "LKem". */
const APPLICATION_ID = 0x4c4b656d;

/** The version of {@link PersistedState} and its table, in `user_version`. */
const SCHEMA_VERSION = 1;

const SCHEMA = `
  CREATE TABLE state (json TEXT NOT NULL) STRICT;
  INSERT INTO state VALUES ('{}');
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};`;

/**
 * Keeps the emulator's state across restarts, as one JSON text in a SQLite database (WAL, mode 0600). {@link save}
 * writes everything or nothing before it returns. `synchronous` is NORMAL: a write survives a kill of the process, but
 * a power cut can lose the last writes, which is acceptable for an emulator. Each write contains the whole state, which
 * suits some thousand logins. Only one emulator can use the file at a time.
 */
export class StateFile {
  readonly #database: Database.Database;
  #state: Partial<PersistedState>;
  #written: string;

  private constructor(database: Database.Database) {
    this.#database = database;
    this.#written = String(database.prepare('SELECT json FROM state').pluck().get());
    this.#state = JSON.parse(this.#written) as Partial<PersistedState>;
  }

  /**
   * Opens a state file, or creates it.
   * @throws StateFileError if it can't be opened, is not a state file, is in use or damaged, or has another version
   */
  static async open(path: string): Promise<StateFile> {
    // Imported only with a state file, because SQLite is native code.
    const { default: Database } = await import('better-sqlite3');
    let database: Database.Database | null = null;
    try {
      closeSync(openSync(path, 'a', 0o600));
      database = new Database(path, { timeout: 500 });
      database.pragma('locking_mode = EXCLUSIVE');
      prepareSchema(database, path);
      database.pragma('journal_mode = WAL');
      database.pragma('synchronous = NORMAL');
      return new StateFile(database);
    } catch (error) {
      database?.close();
      throw error instanceof StateFileError ? error : toStateFileError(path, error);
    }
  }

  /** The saved state; empty for a new file. */
  get state(): Partial<PersistedState> {
    return this.#state;
  }

  /** Saves these parts of the state, and leaves the others unchanged. */
  save(parts: Partial<PersistedState>): void {
    this.#state = { ...this.#state, ...parts };
    const json = JSON.stringify(this.#state);
    if (json === this.#written) return;
    this.#database.prepare('UPDATE state SET json = ?').run(json);
    this.#written = json;
  }

  /** Closes the file. */
  close(): void {
    this.#database.close();
  }
}

/** Checks that the file is the emulator's and has this version; initialises an empty file. */
function prepareSchema(database: Database.Database, path: string): void {
  const id = database.pragma('application_id', { simple: true });
  const version = Number(database.pragma('user_version', { simple: true }));
  const tables = database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (id === 0 && version === 0 && tables === 0) {
    database.transaction(() => database.exec(SCHEMA))();
    return;
  }
  if (id !== APPLICATION_ID) {
    throw new StateFileError(`the file ${path} is not a state file of the emulator; choose another file`);
  }
  if (version !== SCHEMA_VERSION) {
    throw new StateFileError(
      `the state file ${path} was written by another version (schema ${version}, expected ${SCHEMA_VERSION}); choose another file`,
    );
  }
}

function toStateFileError(path: string, cause: unknown): StateFileError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'SQLITE_NOTADB') {
    return new StateFileError(`the file ${path} is not a state file of the emulator; choose another file`, { cause });
  }
  if (code.startsWith('SQLITE_BUSY')) {
    return new StateFileError(`the state file ${path} is in use by another emulator; stop it, or choose another file`, {
      cause,
    });
  }
  if (cause instanceof SyntaxError) {
    return new StateFileError(`the state file ${path} is damaged; choose another file`, { cause });
  }
  return new StateFileError(`the state file ${path} can't be opened (${code || cause}); choose another file`, {
    cause,
  });
}

import { closeSync, openSync } from 'node:fs';
import type Database from 'better-sqlite3';
import * as v from 'valibot';
import type { AuthenticationNotes, GrantNotes } from '../audit/client-audit.ts';
import type { AuthorizationCode } from '../oauth/authorization-codes.ts';
import type { Grant } from '../oauth/grants.ts';
import type { HelperRun } from '../oauth/helper-runs.ts';

/** What outlives the process, as JSON holds it. */
export interface KeptState {
  /** The client that was made up where none was named. */
  readonly client: { readonly id: string; readonly secret: string };
  /** The private CA: its certificate and its key, PEM. */
  readonly authority: { readonly certificate: string; readonly key: string };
  /** What states and tokens are signed with, base64url. */
  readonly stateKey: string;
  readonly tokenKey: string;
  /** Seconds that the clock was put ahead. */
  readonly clockOffset: number;
  readonly grants: readonly Grant[];
  readonly codes: readonly AuthorizationCode[];
  readonly runs: readonly HelperRun[];
  readonly notes: readonly GrantNotes[];
  readonly authentications: readonly AuthenticationNotes[];
}

const text = v.string();
const secretKey = v.pipe(text, v.nonEmpty());
const list = <Entries extends v.ObjectEntries>(entries: Entries) => v.array(v.object(entries));
const times = { issuedAt: v.number(), generation: v.number(), lifetime: v.number() };

/** What of {@link KeptState} has to be right for the emulator to start and to answer. */
const Shape = v.partial(
  v.object({
    client: v.object({ id: text, secret: text }),
    authority: v.object({ certificate: text, key: text }),
    stateKey: secretKey,
    tokenKey: secretKey,
    clockOffset: v.number(),
    grants: list({
      ...{ id: text, clientId: text, user: text, scope: v.nullable(text), revoked: v.boolean() },
      ...{ createdAt: v.number(), refreshedAt: v.number(), generation: v.number(), accessFrom: v.number() },
      presented: v.array(v.number()),
      successors: list({ generation: v.number(), claims: v.object({ grantId: text, ...times }) }),
    }),
    codes: list({ value: text, clientId: text, user: text, issuedAt: v.number(), grantId: v.nullable(text) }),
    runs: list({
      state: v.object({ id: text, clientId: text, expiresAt: v.number() }),
      login: v.nullable(v.object({ jwt: text, openedAt: v.number() })),
    }),
    notes: list({ client: text, grant: text }),
    authentications: list({ client: v.nullable(text), way: text, count: v.number() }),
  }),
);

/** A state file that can't be used; the message says which and what to do. */
export class StateFileError extends Error {
  override readonly name = 'StateFileError';
}

/** Says in a SQLite file whose it is: "LKem". */
const APPLICATION_ID = 0x4c4b656d;

/** The version of {@link KeptState} and the table around it, in `user_version`. */
const VERSION = 2;

const SCHEMA = `
  CREATE TABLE state (json TEXT NOT NULL) STRICT;
  INSERT INTO state VALUES ('{}');
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${VERSION};`;

/**
 * Keeps the emulator's state in a file, as one JSON text in a SQLite database (WAL, mode 0600), so that it outlives the
 * process: it is written when {@link save} returns, all of it or nothing. `synchronous` is NORMAL: what was written
 * outlives a kill of the process; a power cut may take the last writes along, which is enough for an emulator. Each
 * write is of the whole state, which suits some thousand logins. One emulator has the file at a time.
 */
export class StateFile {
  readonly #database: Database.Database;
  #state: Partial<KeptState>;
  #written: string;

  private constructor(database: Database.Database) {
    this.#database = database;
    this.#written = String(database.prepare('SELECT json FROM state').pluck().get());
    const state: unknown = JSON.parse(this.#written);
    if (Array.isArray(state) || !v.safeParse(Shape, state).success) throw new SyntaxError('it is no state');
    this.#state = state as Partial<KeptState>;
  }

  /**
   * Opens a state file, or makes it.
   * @throws StateFileError where it can't be opened, is no state file, is in use or damaged, or another version wrote it
   */
  static async open(path: string): Promise<StateFile> {
    // Loaded only where it is wanted: SQLite is native code.
    const { default: Database } = await import('better-sqlite3');
    let database: Database.Database | null = null;
    try {
      closeSync(openSync(path, 'a', 0o600));
      database = new Database(path, { timeout: 500 });
      database.pragma('locking_mode = EXCLUSIVE');
      prepare(database, path);
      database.pragma('journal_mode = WAL');
      database.pragma('synchronous = NORMAL');
      return new StateFile(database);
    } catch (error) {
      database?.close();
      throw error instanceof StateFileError ? error : unusable(path, error);
    }
  }

  /** What is kept; of a new file nothing. */
  get state(): Partial<KeptState> {
    return this.#state;
  }

  /** Keeps these parts of the state as they are now. */
  save(parts: Partial<KeptState>): void {
    this.#state = { ...this.#state, ...parts };
    const json = JSON.stringify(this.#state);
    if (json === this.#written) return;
    this.#database.prepare('UPDATE state SET json = ?').run(json);
    this.#written = json;
  }

  /** Nothing is kept from here on. */
  close(): void {
    this.#database.close();
  }
}

/** Makes sure that the file is the emulator's and of this version; an empty one becomes it. */
function prepare(database: Database.Database, path: string): void {
  const id = database.pragma('application_id', { simple: true });
  const version = Number(database.pragma('user_version', { simple: true }));
  const tables = database.prepare('SELECT count(*) FROM sqlite_schema').pluck().get();
  if (id === 0 && version === 0 && tables === 0) {
    database.transaction(() => database.exec(SCHEMA))();
    return;
  }
  if (id !== APPLICATION_ID) {
    throw new StateFileError(`the file ${path} is no state of an emulator: choose another one`);
  }
  if (version !== VERSION) {
    throw new StateFileError(
      `the state ${path} was written by another version (schema ${version}, known is ${VERSION}): choose another file`,
    );
  }
}

function unusable(path: string, cause: unknown): StateFileError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  if (code === 'SQLITE_NOTADB') {
    return new StateFileError(`the file ${path} is no state of an emulator: choose another one`, { cause });
  }
  if (code.startsWith('SQLITE_BUSY')) {
    return new StateFileError(`another emulator has the state ${path}: stop it, or choose another file`, { cause });
  }
  if (cause instanceof SyntaxError) {
    return new StateFileError(`the state ${path} is damaged: choose another file`, { cause });
  }
  return new StateFileError(`the state ${path} can't be opened (${code || cause}): choose another file`, { cause });
}

import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Appliance } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { Pairing } from '../core/pairing.ts';
import type { Attempt, Store, StoredGrant } from '../core/store.ts';
import { Ballast } from './ballast.ts';
import { migrate } from './migrations.ts';
import { type GrantRow, grantRow, type PairingRow, pairingRow, readGrant, readPairing } from './rows.ts';
import type { Sealing } from './sealing.ts';

/** How many ended pairings of an appliance are kept, so that their result page can be shown again. */
const ENDED_KEPT = 5;

/**
 * The store of one hub: SQLite in `latchkey.db`, WAL with `synchronous=FULL`, so that what was committed outlives a
 * power cut. It is locked as long as it is open: two hubs must not live on one family of tokens.
 */
export class SqliteStore implements Store, Disposable {
  readonly #database: Database.Database;
  readonly #sealing: Sealing;
  readonly #ballast: Ballast;
  readonly #statements = new Map<string, Database.Statement<unknown[]>>();

  private constructor(database: Database.Database, sealing: Sealing, ballast: Ballast) {
    this.#database = database;
    this.#sealing = sealing;
    this.#ballast = ballast;
  }

  /**
   * Opens the store, making or migrating it.
   * @param directory the state directory
   * @throws Failure `store_unreadable`, `store_unwritable`
   */
  static open(directory: string, sealing: Sealing): SqliteStore {
    const path = join(directory, 'latchkey.db');
    const before = sizeOf(path);
    if (before === 0) {
      throw new Failure(
        'store_unreadable',
        `the store ${path} is an empty file, so its content is lost: put back a copy of the state directory, or remove the file to start anew`,
      );
    }
    if (before === null && sizeOf(`${path}-wal`) !== null) {
      throw new Failure(
        'store_unreadable',
        `the store ${path} is missing, but its journal ${path}-wal is there: put the file back, or remove the journal to start anew`,
      );
    }
    try {
      const database = new Database(path, { timeout: 2000 });
      try {
        database.pragma('locking_mode = EXCLUSIVE');
        database.pragma('journal_mode = WAL');
        database.pragma('synchronous = FULL');
        database.pragma('foreign_keys = ON');
        migrate(database);
        return new SqliteStore(database, sealing, new Ballast(join(directory, 'ballast')));
      } catch (error) {
        database.close();
        throw error;
      }
    } catch (error) {
      // A first start on a full disk leaves an empty file, which the next one would take for a store that was lost.
      if (before === null && sizeOf(path) === 0) rmSync(path, { force: true });
      throw asFailure(error, path);
    }
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }

  async setting(name: string): Promise<string | null> {
    const row = this.#get<{ sealed: string }>('SELECT sealed FROM settings WHERE name = ?', name);
    return row === undefined ? null : this.#sealing.open(`settings/${name}`, row.sealed);
  }

  async saveSetting(name: string, value: string): Promise<void> {
    const sealed = await this.#sealing.seal(`settings/${name}`, value);
    this.#run('INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed', name, sealed);
  }

  async appliances(): Promise<Appliance[]> {
    return this.#all<Appliance>(
      'SELECT id, name, scope, portal, secret_hash AS secretHash FROM appliances ORDER BY name',
    );
  }

  async addAppliance({ id, name, scope, portal, secretHash }: Appliance): Promise<boolean> {
    const insert = 'INSERT INTO appliances VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING';
    return this.#run(insert, id, name, scope, portal, secretHash);
  }

  async replaceSecret(appliance: string, secretHash: string): Promise<void> {
    this.#run('UPDATE appliances SET secret_hash = ? WHERE id = ?', secretHash, appliance);
  }

  async removeAppliance(appliance: string): Promise<void> {
    this.#run('DELETE FROM appliances WHERE id = ?', appliance);
  }

  async grants(): Promise<StoredGrant[]> {
    const rows = this.#all<GrantRow>('SELECT * FROM grants WHERE tokens IS NOT NULL');
    return Promise.all(rows.map((row) => readGrant(row, this.#sealing)));
  }

  async grant(appliance: string): Promise<StoredGrant | null> {
    const row = this.#get<GrantRow>('SELECT * FROM grants WHERE appliance = ? AND tokens IS NOT NULL', appliance);
    return row === undefined ? null : readGrant(row, this.#sealing);
  }

  async generation(appliance: string): Promise<number> {
    const row = this.#get<{ generation: number }>('SELECT generation FROM grants WHERE appliance = ?', appliance);
    return row?.generation ?? 0;
  }

  async beginAttempt(
    { appliance, generation, doubt }: Parameters<Store['beginAttempt']>[0],
    attempt: Attempt,
  ): Promise<boolean> {
    this.#guarded(() => this.#ballast.keep());
    return this.#run(
      'UPDATE grants SET attempt = ?, doubt = ? WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL',
      JSON.stringify(attempt),
      doubt === null ? null : JSON.stringify(doubt),
      appliance,
      generation,
    );
  }

  async endAttempt({ appliance, generation, doubt, refused }: Parameters<Store['endAttempt']>[0]): Promise<boolean> {
    return this.#run(
      'UPDATE grants SET attempt = NULL, doubt = ?, refused = ? WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL',
      doubt === null ? null : JSON.stringify(doubt),
      refused === null ? null : JSON.stringify(refused),
      appliance,
      generation,
    );
  }

  async replaceGrant(grant: Grant): Promise<boolean> {
    const row = await grantRow(grant, this.#sealing);
    return this.#withBallast(() => this.#putGrant(row));
  }

  async forgetGrant(appliance: string, generation: number): Promise<boolean> {
    return this.#run(
      `UPDATE grants SET generation = generation + 1, tokens = NULL, attributes = NULL, attempt = NULL, doubt = NULL, refused = NULL
       WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL`,
      appliance,
      generation,
    );
  }

  async pairings(): Promise<Pairing[]> {
    const rows = this.#all<PairingRow>('SELECT id, appliance, sealed, attributes, step FROM pairings ORDER BY number');
    return Promise.all(rows.map((row) => readPairing(row, this.#sealing)));
  }

  async savePairing(pairing: Pairing): Promise<void> {
    const row = await pairingRow(pairing, this.#sealing);
    if (pairing.step.kind === 'exchanging') this.#guarded(() => this.#ballast.keep());
    this.#transaction(() => this.#putPairing(row));
  }

  async concludePairing(pairing: Pairing, grant: Grant): Promise<boolean> {
    const [pairingPart, grantPart] = await Promise.all([
      pairingRow(pairing, this.#sealing),
      grantRow(grant, this.#sealing),
    ]);
    const conclude = () => {
      if (!this.#putGrant(grantPart)) return false;
      this.#putPairing(pairingPart);
      return true;
    };
    return this.#withBallast(() => this.#transaction(conclude));
  }

  #putGrant(row: GrantRow): boolean {
    const values = [row.tokens, row.attributes, row.attempt, row.doubt, row.refused];
    const replaced = this.#run(
      `UPDATE grants SET generation = generation + 1, tokens = ?, attributes = ?, attempt = ?, doubt = ?, refused = ?
       WHERE appliance = ? AND generation = ?`,
      ...values,
      row.appliance,
      row.generation - 1,
    );
    if (replaced || row.generation !== 1) return replaced;
    return this.#run(
      `INSERT INTO grants (tokens, attributes, attempt, doubt, refused, appliance, generation)
       VALUES (?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO NOTHING`,
      ...values,
      row.appliance,
    );
  }

  #putPairing(row: PairingRow): void {
    this.#run(
      `INSERT INTO pairings (id, appliance, sealed, attributes, step) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET sealed = excluded.sealed, attributes = excluded.attributes, step = excluded.step`,
      row.id,
      row.appliance,
      row.sealed,
      row.attributes,
      row.step,
    );
    this.#run(
      `DELETE FROM pairings WHERE appliance = ? AND json_extract(step, '$.kind') = 'ended' AND number <=
         (SELECT number FROM pairings WHERE appliance = ? ORDER BY number DESC LIMIT 1 OFFSET ${ENDED_KEPT})`,
      row.appliance,
      row.appliance,
    );
  }

  #prepared(sql: string): Database.Statement<unknown[]> {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) return kept;
    const statement = this.#database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #guarded<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw asFailure(error, this.#database.name);
    }
  }

  /** Writes tokens that the portal gives only once: on a full disk the ballast makes room for them. */
  #withBallast<Result>(write: () => Result): Result {
    try {
      return write();
    } catch {
      this.#ballast.giveUp();
      return write();
    }
  }

  #transaction<Result>(work: () => Result): Result {
    return this.#guarded(() => this.#database.transaction(work).immediate());
  }

  /** @returns whether a row was changed */
  #run(sql: string, ...values: unknown[]): boolean {
    return this.#guarded(() => this.#prepared(sql).run(...values).changes > 0);
  }

  #get<Row>(sql: string, ...values: unknown[]): Row | undefined {
    return this.#guarded(() => this.#prepared(sql).get(...values) as Row | undefined);
  }

  #all<Row>(sql: string): Row[] {
    return this.#guarded(() => this.#prepared(sql).all() as Row[]);
  }
}

/** Null where there is no such file. */
function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

const FULL = /^(SQLITE_FULL|ENOSPC|EDQUOT)$/;
const UNREADABLE = /^SQLITE_(CORRUPT|NOTADB|CANTOPEN)/;

function asFailure(error: unknown, path: string): Failure {
  if (error instanceof Failure) return error;
  const cause = error instanceof Error ? error : new Error(String(error));
  const code = 'code' in cause ? String(cause.code) : '';
  if (code.startsWith('SQLITE_BUSY')) {
    return new Failure('store_unwritable', `another Latchkey has the store ${path} open: stop it first`, { cause });
  }
  if (UNREADABLE.test(code)) {
    return new Failure(
      'store_unreadable',
      `the store ${path} can't be read (${code}): put back a copy of the state directory`,
      { cause },
    );
  }
  const what = FULL.test(code) ? 'the disk is full: make room' : `it can't be written (${code || cause.message})`;
  return new Failure('store_unwritable', `the store ${path}: ${what}`, { cause });
}

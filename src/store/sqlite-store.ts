import type Database from 'better-sqlite3';
import type { Appliance } from '../core/appliance.ts';
import { Failure } from '../core/failure.ts';
import type { Grant } from '../core/grant.ts';
import type { Pairing } from '../core/pairing.ts';
import type { Attempt, Store, StoredGrant } from '../core/store.ts';
import { Ballast } from './ballast.ts';
import { asFailure } from './database.ts';
import { type GrantRow, grantRow, type PairingRow, pairingRow, readGrant, readPairing } from './rows.ts';
import { type Salvage, type SettingRow, salvage } from './salvage.ts';
import type { Sealing } from './sealing.ts';
import type { StoreFiles } from './store-files.ts';

/** How many ended pairings of an appliance are kept, so that their result page can be shown again. */
const ENDED_KEPT = 5;

/** A database, ready to be served from. */
export interface OpenedDatabase {
  readonly database: Database.Database;
  /** Why it is only a copy in memory, and nothing can be written; null where it is open for good. */
  readonly unwritable: string | null;
  /** Says what was put in place of a damaged database; null where nothing was. */
  readonly recovered: string | null;
}

/** A state that takes the place of another. */
export interface NewState {
  readonly settings: readonly SettingRow[];
  /** Appliances to be added. */
  readonly appliances: readonly Appliance[];
  /** Ids of appliances to be removed. */
  readonly unpaired: readonly string[];
  readonly grants: readonly GrantRow[];
  /** The generation of each appliance's grant that this was made for. */
  readonly generations: ReadonlyMap<string, number>;
}

/**
 * The store of one hub: SQLite in `latchkey.db`, WAL with `synchronous=FULL`, so that what was committed outlives a
 * power cut. It is locked as long as it is open: two hubs must not live on one family of tokens.
 */
export class SqliteStore implements Store, Disposable {
  readonly files: StoreFiles;
  readonly sealing: Sealing;
  readonly #ballast: Ballast;
  readonly #reopen: () => Promise<OpenedDatabase>;
  readonly #damagedGrants = new Set<string>();
  readonly #statements = new Map<string, Database.Statement<unknown[]>>();
  #opened: OpenedDatabase;
  #paired: () => void = () => undefined;

  /** @param reopen opens it anew, for one that can't be written for now */
  constructor(files: StoreFiles, opened: OpenedDatabase, sealing: Sealing, reopen: () => Promise<OpenedDatabase>) {
    this.files = files;
    this.#opened = opened;
    this.sealing = sealing;
    this.#reopen = reopen;
    this.#ballast = new Ballast(files.ballast);
  }

  /** Why nothing can be written, and all is served from memory; null where it can. */
  get unwritable(): string | null {
    return this.#opened.unwritable;
  }

  /** What was put in place of a damaged database, in one sentence; null where nothing was. */
  get recovered(): string | null {
    return this.#opened.recovered;
  }

  /** Appliances whose grant is on disk and can't be read: nothing but another pairing brings it back. */
  get damagedGrants(): ReadonlySet<string> {
    return this.#damagedGrants;
  }

  /** Calls `paired` whenever a pairing has brought a grant. */
  whenPaired(paired: () => void): void {
    this.#paired = paired;
  }

  /** How many rows were changed since it was opened. */
  get changes(): number {
    return this.#get<{ changes: number }>('SELECT total_changes() AS changes')?.changes ?? 0;
  }

  /** All rows as they are at one moment. */
  content(): Promise<Salvage> {
    return salvage(this.#opened.database, this.sealing);
  }

  /**
   * Puts another state over this one, all of it or nothing.
   * @returns false, having changed nothing, where the grants are not of `generations` any more
   */
  putState({ settings, appliances, unpaired, grants, generations }: NewState): boolean {
    const put = () => {
      const now = this.#all<{ appliance: string; generation: number }>('SELECT appliance, generation FROM grants');
      if (now.length !== generations.size) return false;
      if (now.some(({ appliance, generation }) => generations.get(appliance) !== generation)) return false;
      for (const id of unpaired) this.#run('DELETE FROM appliances WHERE id = ?', id);
      for (const { name, sealed } of settings) this.#putSetting(name, sealed);
      for (const { id, name, scope, portal, secretHash } of appliances) {
        this.#run('INSERT INTO appliances VALUES (?, ?, ?, ?, ?)', id, name, scope, portal, secretHash);
      }
      for (const { appliance, generation, tokens, attributes, attempt, doubt, refused } of grants) {
        this.#run(
          'INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?, ?, ?)',
          ...[appliance, generation, tokens, attributes, attempt, doubt, refused],
        );
      }
      return true;
    };
    return this.#transaction(put);
  }

  /**
   * Copies the whole database to another file, and then moves the journal to the database: so a database that has less
   * than its copy has lost something.
   */
  async copyDatabase(path: string): Promise<void> {
    const { database } = this.#opened;
    await database.backup(path);
    this.#guarded(() => database.pragma('wal_checkpoint(TRUNCATE)'));
  }

  /**
   * Looks whether a store that could not be written can be now.
   * @returns whether it can
   * @throws Failure as the store is opened
   */
  async tryToWrite(): Promise<boolean> {
    if (this.#opened.unwritable === null) return true;
    const before = this.#opened;
    const opened = await this.#reopen();
    this.#opened = { ...opened, recovered: opened.recovered ?? before.recovered };
    this.#statements.clear();
    before.database.close();
    return opened.unwritable === null;
  }

  [Symbol.dispose](): void {
    this.#opened.database.close();
  }

  async setting(name: string): Promise<string | null> {
    const row = this.#get<{ sealed: string }>('SELECT sealed FROM settings WHERE name = ?', name);
    if (row === undefined) return null;
    try {
      return await this.sealing.open(`settings/${name}`, row.sealed);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      // It will be made anew; what is there is kept for whoever can make sense of it.
      const keep = "INSERT OR REPLACE INTO settings SELECT name || '.damaged', sealed FROM settings WHERE name = ?";
      if (this.unwritable === null) this.#run(keep, name);
      return null;
    }
  }

  async saveSetting(name: string, value: string): Promise<void> {
    const sealed = await this.sealing.seal(`settings/${name}`, value);
    this.#putSetting(name, sealed);
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
    const read = await Promise.all(rows.map((row) => this.#readGrant(row)));
    return read.filter((grant) => grant !== null);
  }

  async grant(appliance: string): Promise<StoredGrant | null> {
    const row = this.#get<GrantRow>('SELECT * FROM grants WHERE appliance = ? AND tokens IS NOT NULL', appliance);
    return row === undefined ? null : this.#readGrant(row);
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
    const row = await grantRow(grant, this.sealing);
    return this.#withBallast(() => this.#putGrant(row));
  }

  async forgetGrant(appliance: string, generation: number): Promise<boolean> {
    this.#damagedGrants.delete(appliance);
    return this.#run(
      `UPDATE grants SET generation = generation + 1, tokens = NULL, attributes = NULL, attempt = NULL, doubt = NULL, refused = NULL
       WHERE appliance = ? AND generation = ? AND tokens IS NOT NULL`,
      appliance,
      generation,
    );
  }

  async pairings(): Promise<Pairing[]> {
    const rows = this.#all<PairingRow>('SELECT id, appliance, sealed, attributes, step FROM pairings ORDER BY number');
    const read = await Promise.all(rows.map((row) => readPairing(row, this.sealing).catch(nullIfDamaged)));
    return read.filter((pairing) => pairing !== null);
  }

  async savePairing(pairing: Pairing): Promise<void> {
    const row = await pairingRow(pairing, this.sealing);
    if (pairing.step.kind === 'exchanging') this.#guarded(() => this.#ballast.keep());
    this.#transaction(() => this.#putPairing(row));
  }

  async concludePairing(pairing: Pairing, grant: Grant): Promise<boolean> {
    const [pairingPart, grantPart] = await Promise.all([
      pairingRow(pairing, this.sealing),
      grantRow(grant, this.sealing),
    ]);
    const conclude = () => {
      if (!this.#putGrant(grantPart)) return false;
      this.#putPairing(pairingPart);
      return true;
    };
    const concluded = this.#withBallast(() => this.#transaction(conclude));
    if (concluded) this.#paired();
    return concluded;
  }

  /** A grant that can't be read costs its appliance a pairing, and no other appliance anything. */
  async #readGrant(row: GrantRow): Promise<StoredGrant | null> {
    const grant = await readGrant(row, this.sealing).catch(nullIfDamaged);
    if (grant === null) this.#damagedGrants.add(row.appliance);
    else this.#damagedGrants.delete(row.appliance);
    return grant;
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

  #putSetting(name: string, sealed: string): void {
    this.#run('INSERT INTO settings VALUES (?, ?) ON CONFLICT DO UPDATE SET sealed = excluded.sealed', name, sealed);
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
    const statement = this.#opened.database.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #guarded<Result>(work: () => Result): Result {
    try {
      return work();
    } catch (error) {
      throw asFailure(error, this.files.database);
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
    return this.#guarded(() => this.#opened.database.transaction(work).immediate());
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

function nullIfDamaged(error: unknown): null {
  if (error instanceof Failure) return null;
  throw error;
}

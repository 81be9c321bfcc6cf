import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Timers } from '../../core/clock.ts';
import { Failure, messageOf, messageWithoutAdvice } from '../../core/failure.ts';
import { systemTimers } from '../../system/clock.ts';
import type { Sealing } from '../keys/sealing.ts';
import {
  atomicReplace,
  checkWritable,
  copyStoreFiles,
  fileSize,
  finishReplacement,
  readFileOrNull,
  restoreKeptWal,
  type StoreFiles,
  storeFiles,
} from '../store-files.ts';
import { type OpenedDatabase, openDatabase, openInMemory } from './database.ts';
import {
  canRepairFromSnapshot,
  isOlderThanSnapshot,
  type RebuiltDatabase,
  rebuild,
  type SalvagedSnapshot,
} from './recovery/rebuild.ts';
import { type Salvage, salvage } from './recovery/salvage.ts';
import { prepareSchema } from './schema.ts';
import { SqliteStore } from './sqlite-store.ts';

/**
 * Opens the store of a hub, or creates it. A damaged store is rebuilt from what can be read of it and of
 * its snapshot, and the damaged files are kept. A store that can't be written is served from memory.
 * @param wall the wall clock in ms since 1970, for the name of a damaged store
 * @param timers for writes that wait for others with which they can share a commit
 * @param others other keys that may open the store; the one that does is the store's key from then on
 * @throws Failure `store_unreadable` if there is nothing to serve, `store_schema_unknown`, `store_key_wrong`,
 *   `store_locked`, `state_dir_unusable`
 */
export async function openStore(
  directory: string,
  sealing: Sealing,
  wall: () => number,
  timers: Timers = systemTimers,
  others: readonly Sealing[] = [],
): Promise<SqliteStore> {
  const files = storeFiles(directory);
  const open = (...keys: readonly [Sealing, ...Sealing[]]) => new StoreOpener(files, keys, wall).open();
  return new SqliteStore(files, await open(sealing, ...others), open, timers);
}

/** The database as it was found. */
interface FoundDatabase {
  /** The open database file; null if it can't be opened. */
  readonly live: Database.Database | null;
  readonly salvaged: Salvage | null;
  /** The readable content as a database, if there is no `live`. */
  readonly bytes: Uint8Array | null;
  readonly damage: string | null;
  /** Neither the file nor its WAL exists, as after a restore of a backup that leaves them out. */
  readonly isMissing?: true;
  readonly unwritable: string | null;
}

/** An opened database whose sealing is not decided yet. */
type OpenedWithoutSealing = Omit<OpenedDatabase, 'sealing'>;

class StoreOpener {
  readonly #files: StoreFiles;
  readonly #sealings: readonly [Sealing, ...Sealing[]];
  readonly #wall: () => number;

  constructor(files: StoreFiles, sealings: readonly [Sealing, ...Sealing[]], wall: () => number) {
    this.#files = files;
    this.#sealings = sealings;
    this.#wall = wall;
  }

  async open(): Promise<OpenedDatabase> {
    const unwritable = this.#writeProblem();
    if (unwritable === null) {
      restoreKeptWal(this.#files);
      finishReplacement(this.#files);
    }
    if (this.#isNew()) {
      return {
        database: this.#createDatabase(unwritable),
        sealing: this.#sealings[0],
        writeProblem: null,
        recoverySummary: null,
      };
    }
    const found = this.#inspect(unwritable);
    try {
      return this.#useOrRecover(found);
    } catch (error) {
      found.live?.close();
      throw error;
    }
  }

  #writeProblem(): string | null {
    try {
      checkWritable(this.#files);
      return null;
    } catch (error) {
      return messageWithoutAdvice(error);
    }
  }

  #isNew(): boolean {
    const { database, wal, snapshot } = this.#files;
    return [database, wal, snapshot].every((path) => fileSize(path) === null);
  }

  #createDatabase(unwritable: string | null): Database.Database {
    if (unwritable === null) return openDatabase(this.#files);
    throw new Failure(
      'state_dir_unusable',
      `the state directory ${this.#files.directory} (hub.state_dir) can't be written by this user, and there is no store in it yet (${unwritable}): give it to that user, or name another directory`,
    );
  }

  /** Reads what is there without changing its content. */
  #inspect(unwritable: string | null): FoundDatabase {
    const nothing = { live: null, salvaged: null, bytes: null, damage: null, unwritable };
    const { database, wal } = this.#files;
    const size = fileSize(database);
    if (size === null) {
      if (fileSize(wal) === null) return { ...nothing, damage: 'the file is missing', isMissing: true };
      return { ...nothing, damage: `the file is missing, but its WAL ${wal} is there` };
    }
    if (size === 0) return { ...nothing, damage: 'the file is empty' };
    if (unwritable === null) {
      try {
        const live = openDatabase(this.#files);
        const salvaged = salvage(live, this.#sealings);
        return { ...nothing, live, salvaged, damage: salvaged.damage };
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (error.code === 'store_locked' || error.code === 'store_schema_unknown') throw error;
        if (error.code === 'store_unwritable')
          return this.#inspectScratchCopy({ ...nothing, unwritable: messageWithoutAdvice(error) });
        return this.#inspectScratchCopy({ ...nothing, damage: messageOf(error.cause ?? error) });
      }
    }
    return this.#inspectScratchCopy(nothing);
  }

  /** Reads a copy in another directory, if the database file can't be opened in place. */
  #inspectScratchCopy(found: FoundDatabase): FoundDatabase {
    for (const parent of [tmpdir(), '/dev/shm']) {
      let scratch: string | null = null;
      let database: Database.Database | null = null;
      try {
        scratch = mkdtempSync(join(parent, 'latchkey-store-'));
        database = new Database(copyStoreFiles(this.#files, scratch).database);
        prepareSchema(database, this.#files.database);
        const salvaged = salvage(database, this.#sealings);
        return { ...found, salvaged, bytes: database.serialize(), damage: found.damage ?? salvaged.damage };
      } catch (error) {
        if (error instanceof Failure) throw error;
        found = { ...found, damage: found.damage ?? messageOf(error) };
      } finally {
        database?.close();
        if (scratch !== null) rmSync(scratch, { recursive: true, force: true });
      }
    }
    return found;
  }

  #useOrRecover(found: FoundDatabase): OpenedDatabase {
    const { live, unwritable } = found;
    const opens = found.salvaged !== null && found.salvaged.openedCount > 0;
    const snapshot = this.#loadSnapshot(opens ? found.salvaged.sealing : undefined);
    const raw = found.salvaged;
    const sealing = (opens ? raw : (snapshot?.salvage ?? raw))?.sealing ?? this.#sealings[0];
    const isOlder = raw !== null && snapshot !== null && isOlderThanSnapshot(raw, snapshot.salvage);
    const damage = found.damage ?? (isOlder ? 'it is older than its snapshot' : null);
    const salvaged = raw && { ...raw, damage };
    const isSound = salvaged !== null && damage === null;
    if (isSound && salvaged.unreadable.size === 0) return { ...this.#useAsFound(found), sealing };
    if (
      salvaged !== null &&
      salvaged.openedCount === 0 &&
      salvaged.unreadable.size > 0 &&
      (snapshot?.salvage.openedCount ?? 0) === 0
    ) {
      throw new Failure(
        'store_key_wrong',
        `the store ${this.#files.database} was sealed with another store.key: restore the right key`,
      );
    }
    if (isSound && !(snapshot !== null && canRepairFromSnapshot(salvaged, snapshot.salvage)))
      return { ...this.#useAsFound(found), sealing };
    if (!hasContent(salvaged) && snapshot === null) throw this.#unrecoverable(damage ?? 'nothing can be read');
    const rebuilt = rebuild({ salvaged, snapshot, sealing });
    const why = describeFault(found, damage ?? describeUnreadableRows(salvaged));
    try {
      if (unwritable !== null) return { ...this.#serveFromMemory(rebuilt, why, snapshot, unwritable), sealing };
      live?.close();
      return { ...this.#replaceDamaged(rebuilt, why, snapshot), sealing };
    } finally {
      rebuilt.database.close();
    }
  }

  #useAsFound({ live, bytes, unwritable }: FoundDatabase): OpenedWithoutSealing {
    if (live !== null) return { database: live, writeProblem: null, recoverySummary: null };
    if (bytes === null) throw this.#unrecoverable(unwritable ?? 'nothing can be read');
    return {
      database: openInMemory(bytes, this.#files.database),
      writeProblem: unwritable,
      recoverySummary: null,
    };
  }

  #serveFromMemory(
    rebuilt: RebuiltDatabase,
    why: string,
    snapshot: SalvagedSnapshot | null,
    unwritable: string,
  ): OpenedWithoutSealing {
    const database = openInMemory(rebuilt.database.serialize(), this.#files.database);
    return {
      database,
      writeProblem: unwritable,
      recoverySummary: this.#describeRecovery(rebuilt, why, snapshot, null),
    };
  }

  #replaceDamaged(rebuilt: RebuiltDatabase, why: string, snapshot: SalvagedSnapshot | null): OpenedWithoutSealing {
    const bytes = rebuilt.database.serialize();
    try {
      const aside = atomicReplace(this.#files, bytes, new Date(this.#wall()).toISOString());
      const recovered = this.#describeRecovery(rebuilt, why, snapshot, aside);
      return { database: openDatabase(this.#files), writeProblem: null, recoverySummary: recovered };
    } catch (error) {
      return this.#serveFromMemory(rebuilt, why, snapshot, messageWithoutAdvice(error));
    }
  }

  /** @param to the sealing of the result; undefined for the one of the snapshot */
  #loadSnapshot(to: Sealing | undefined): SalvagedSnapshot | null {
    const found = readFileOrNull(this.#files.snapshot);
    if (found === null) return null;
    try {
      using stack = new DisposableStack();
      const database = stack.adopt(openInMemory(found.bytes, this.#files.snapshot), (open) => open.close());
      const content = salvage(database, this.#sealings, to);
      return content.openedCount === 0 && content.unreadable.size > 0
        ? null
        : { salvage: content, createdAt: found.written };
    } catch (error) {
      if (error instanceof Failure) return null;
      throw error;
    }
  }

  /** What was done, in one sentence. */
  #describeRecovery(
    { connectionsFromSnapshot: fromSnapshot, lostGrantCount, lostAppliances }: RebuiltDatabase,
    why: string,
    snapshot: SalvagedSnapshot | null,
    aside: string | null,
  ): string {
    const kept = aside === null ? '' : ` and is kept as ${aside}`;
    const made = snapshot === null ? null : `the snapshot of ${new Date(snapshot.createdAt).toISOString()}`;
    const replaced = `replaced by what could be read of it${made === null ? '' : ` and of ${made}`}`;
    const doubts =
      fromSnapshot.length === 0
        ? ''
        : `; the grants of ${fromSnapshot.join(', ')} come from the snapshot, and their refresh tokens may be used up`;
    const lostGrants = lostGrantCount === 0 ? '' : `; ${lostGrantCount} grants could not be kept`;
    const lost =
      lostAppliances.length === 0
        ? ''
        : `; ${lostAppliances.join(', ')} could not be kept, because its connection can't be read: add it again`;
    return `the store ${this.#files.database} ${why}${kept}; it was ${why === MISSING ? `made again from ${made}` : replaced}${doubts}${lostGrants}${lost}`;
  }

  #unrecoverable(why: string): Failure {
    return new Failure(
      'store_unreadable',
      `the store ${this.#files.database} can't be repaired (${why}), and it has no snapshot: restore a copy of the state directory, or move the store's files away to start with an empty store; nothing was changed`,
    );
  }
}

const MISSING = 'was missing, as after a restore of a backup that leaves it out';

/** @param damage what is wrong with the file or its rows */
function describeFault({ isMissing, salvaged, unwritable }: FoundDatabase, damage: string): string {
  if (isMissing) return MISSING;
  return salvaged === null && unwritable !== null ? `can't be read (${damage})` : `was damaged (${damage})`;
}

/** How many rows can't be read or were changed, and the appliances and connections whose row is among them. */
function describeUnreadableRows(salvaged: Salvage | null): string {
  const unreadable = salvaged?.unreadable ?? new Set<string>();
  const affected = [
    ...(salvaged?.appliances.filter(({ id }) => unreadable.has(`appliances/${id}`)) ?? []).map(
      ({ name }) => `the appliance ${name}`,
    ),
    ...(salvaged?.connections.filter(({ id }) => unreadable.has(`connections/${id}`)) ?? []).map(
      ({ name }) => `the connection ${name}`,
    ),
  ];
  const names = affected.length === 0 ? '' : `, among them ${affected.join(', ')}`;
  return `${unreadable.size} of its rows can't be read or were changed${names}`;
}

function hasContent(salvaged: Salvage | null): boolean {
  return salvaged !== null && (salvaged.connections.length > 0 || salvaged.openedCount > 0);
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import type { Timers } from '../core/clock.ts';
import { Failure, messageOf, messageWithoutAdvice } from '../core/failure.ts';
import { systemTimers } from '../system/clock.ts';
import { type OpenedDatabase, openDatabase, openInMemory } from './database/database.ts';
import { migrate } from './database/migrations.ts';
import {
  atomicReplace,
  checkWritable,
  copyStoreFiles,
  fileSize,
  finishReplacement,
  readFileOrNull,
  type StoreFiles,
  storeFiles,
} from './database/store-files.ts';
import type { Sealing } from './keys/sealing.ts';
import {
  canRepairFromSnapshot,
  isOlderThanSnapshot,
  type RebuiltDatabase,
  rebuild,
  type SalvagedSnapshot,
} from './recovery/rebuild.ts';
import { checkKeys, type Salvage, salvage } from './recovery/salvage.ts';
import { SqliteStore } from './sqlite-store.ts';

/**
 * Opens the store of a hub, making or migrating it. A damaged one is put together again from what can be read of it and
 * its daily copy, and kept beside; one that can't be written is served from memory.
 * @param wall tells the time, in ms since 1970: it names the damaged one
 * @param timers by these a write waits for others that it may share a commit with
 * @param others other keys that it may be sealed with; whichever opens it is the store's from then on
 * @throws Failure `store_unreadable` where there is nothing to serve, `store_key_wrong`, `store_locked`,
 *   `state_dir_unusable`
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
  /** Open for good; null where that is not possible. */
  readonly live: Database.Database | null;
  readonly left: Salvage | null;
  /** What is left, as bytes, where there is no `live`. */
  readonly bytes: Uint8Array | null;
  readonly damage: string | null;
  readonly unwritable: string | null;
}

/** An opened database, but for what is known of its sealing. */
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
    if (unwritable === null) finishReplacement(this.#files);
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
    const { database, wal: journal, snapshot } = this.#files;
    return [database, journal, snapshot].every((path) => fileSize(path) === null);
  }

  #createDatabase(unwritable: string | null): Database.Database {
    if (unwritable === null) return openDatabase(this.#files);
    throw new Failure(
      'state_dir_unusable',
      `the state directory ${this.#files.directory} (hub.state_dir) can't be written by this user, and there is no store in it yet (${unwritable}): give it to that user, or name another directory`,
    );
  }

  /** Reads what there is, changing nothing of what is in it. */
  #inspect(unwritable: string | null): FoundDatabase {
    const nothing = { live: null, left: null, bytes: null, damage: null, unwritable };
    const { database, wal: journal } = this.#files;
    const size = fileSize(database);
    if (size === null) {
      const journalLeft = fileSize(journal) === null ? '' : `, but its journal ${journal} is there`;
      return { ...nothing, damage: `the file is missing${journalLeft}` };
    }
    if (size === 0) return { ...nothing, damage: 'it is an empty file' };
    if (unwritable === null) {
      try {
        const live = openDatabase(this.#files, (found) => checkKeys(found, this.#sealings));
        const left = salvage(live, this.#sealings);
        return { ...nothing, live, left, damage: left.damage };
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        if (error.code === 'store_locked' || error.code === 'store_newer') throw error;
        if (error.code === 'store_key_wrong')
          return this.#inspectScratchCopy({ ...nothing, damage: 'no key opens it' });
        if (error.code === 'store_unwritable')
          return this.#inspectScratchCopy({ ...nothing, unwritable: messageWithoutAdvice(error) });
        return this.#inspectScratchCopy({ ...nothing, damage: messageOf(error.cause ?? error) });
      }
    }
    return this.#inspectScratchCopy(nothing);
  }

  /** Reads a copy in another place, where the database can't be opened for good. */
  #inspectScratchCopy(found: FoundDatabase): FoundDatabase {
    for (const place of [tmpdir(), '/dev/shm']) {
      let scratch: string | null = null;
      let database: Database.Database | null = null;
      try {
        scratch = mkdtempSync(join(place, 'latchkey-store-'));
        database = new Database(copyStoreFiles(this.#files, scratch).database);
        migrate(database);
        const left = salvage(database, this.#sealings);
        return { ...found, left, bytes: database.serialize(), damage: found.damage ?? left.damage };
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
    const opens = found.left !== null && found.left.openedCount > 0;
    const snapshot = this.#loadSnapshot(opens ? found.left.sealing : undefined);
    const whole = found.left;
    const sealing = (opens ? whole : (snapshot?.salvage ?? whole))?.sealing ?? this.#sealings[0];
    const behind = whole !== null && snapshot !== null && isOlderThanSnapshot(whole, snapshot.salvage);
    const damage = found.damage ?? (behind ? 'it is older than its daily copy' : null);
    const left = whole && { ...whole, damage };
    const sound = left !== null && damage === null;
    if (sound && left.unreadable.size === 0) return { ...this.#useAsFound(found), sealing };
    if (
      left !== null &&
      left.openedCount === 0 &&
      left.unreadable.size > 0 &&
      (snapshot?.salvage.openedCount ?? 0) === 0
    ) {
      throw new Failure(
        'store_key_wrong',
        `the store ${this.#files.database} was sealed with another store.key: put the right key back`,
      );
    }
    if (sound && !(snapshot !== null && canRepairFromSnapshot(left, snapshot.salvage)))
      return { ...this.#useAsFound(found), sealing };
    if (!hasContent(left) && snapshot === null) throw this.#unrecoverable(damage ?? 'nothing can be read');
    const rebuilt = rebuild({ salvaged: left, snapshot });
    const why =
      left === null && unwritable !== null
        ? `can't be read (${damage})`
        : `was damaged (${damage ?? describeUnreadableRows(left)})`;
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
    return { database: openInMemory(bytes, this.#files.database), writeProblem: unwritable, recoverySummary: null };
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

  /** @param to how what is in it is to be sealed */
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

  /** What was done, in one sentence for people. */
  #describeRecovery(
    { appliancesFromSnapshot: fromSnapshot, lostGrantCount: lost }: RebuiltDatabase,
    why: string,
    snapshot: SalvagedSnapshot | null,
    aside: string | null,
  ): string {
    const kept = aside === null ? '' : ` and is kept as ${aside}`;
    const source = snapshot === null ? '' : ` and the daily copy of ${new Date(snapshot.createdAt).toISOString()}`;
    const doubts =
      fromSnapshot.length === 0
        ? ''
        : `; from the copy, and perhaps used up, are the grants of ${fromSnapshot.join(', ')}`;
    const losses = lost === 0 ? '' : `; of ${lost} grants the appliance is not known any more`;
    return `the store ${this.#files.database} ${why}${kept}; in its place is what could be read of it${source}${doubts}${losses}`;
  }

  #unrecoverable(why: string): Failure {
    return new Failure(
      'store_unreadable',
      `the store ${this.#files.database} is beyond help (${why}), and there is no daily copy of it: put back a copy of the state directory, or move the store's files away to start anew; nothing was changed`,
    );
  }
}

/** How many rows can't be read or were changed, and which appliances' own are among them. */
function describeUnreadableRows(left: Salvage | null): string {
  const names = left?.appliances.filter(({ id }) => left.unreadable.has(`appliances/${id}`)).map(({ name }) => name);
  const own = names === undefined || names.length === 0 ? '' : `, among them the appliance ${names.join(', ')}`;
  return `${left?.unreadable.size ?? 0} of its rows can't be read or were changed${own}`;
}

function hasContent(left: Salvage | null): boolean {
  return left !== null && (left.appliances.length > 0 || left.openedCount > 0);
}

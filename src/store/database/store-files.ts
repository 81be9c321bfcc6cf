import {
  accessSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** The store's files in the state directory. */
export interface StoreFiles {
  readonly directory: string;
  readonly database: string;
  /** SQLite's write-ahead log: what was committed last may be nowhere else. */
  readonly wal: string;
  /** The daily copy of the database. */
  readonly snapshot: string;
  readonly ballast: string;
  /** A database that is whole and about to take the place of a damaged one. */
  readonly replacement: string;
}

export function storeFiles(directory: string): StoreFiles {
  const database = join(directory, 'latchkey.db');
  return {
    directory,
    database,
    wal: `${database}-wal`,
    snapshot: `${database}.copy`,
    ballast: join(directory, 'ballast'),
    replacement: `${database}.new`,
  };
}

/** Bytes of a file; null where there is none. */
export function fileSize(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

/** @throws the file system's error where nothing can be written in the directory */
export function checkWritable({ directory }: StoreFiles): void {
  accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
}

/** Ends a {@link atomicReplace} that a crash cut short: it can be told by the database being gone. */
export function finishReplacement({ database, wal: journal, replacement: successor, directory }: StoreFiles): void {
  if (!existsSync(successor)) return;
  if (existsSync(database)) {
    rmSync(successor, { force: true });
    return;
  }
  rmSync(journal, { force: true });
  renameSync(successor, database);
  fsyncPath(directory);
}

/**
 * Puts another database in place of a damaged one, which is kept under another name. A crash leaves either of them, or
 * what {@link finishReplacement} needs.
 * @param instant names the damaged one: an instant in RFC 3339
 * @returns where the damaged one is now; null where there was none
 * @throws the file system's error; then nothing has changed
 */
export function atomicReplace(files: StoreFiles, bytes: Uint8Array, instant: string): string | null {
  const { database, wal: journal, replacement: successor, directory } = files;
  try {
    writeFileSync(successor, bytes, { mode: 0o600, flush: true });
  } catch (error) {
    rmSync(successor, { force: true });
    throw error;
  }
  const aside = unusedName(`${database}.damaged-${instant.replaceAll(/[:.]/g, '-')}`);
  // SQLite finds a journal by its database's name, whatever that is.
  linkIfExists(database, aside);
  linkIfExists(journal, `${aside}-wal`);
  rmSync(database, { force: true });
  finishReplacement(files);
  fsyncPath(directory);
  return existsSync(aside) || existsSync(`${aside}-wal`) ? aside : null;
}

/** Copies the database and its journal to another directory. @throws the file system's error */
export function copyStoreFiles(files: StoreFiles, directory: string): StoreFiles {
  const copies = storeFiles(directory);
  copyFileSync(files.database, copies.database);
  if (existsSync(files.wal)) copyFileSync(files.wal, copies.wal);
  return copies;
}

/** The bytes of a file and when it was written, in ms since 1970; null where there is none that can be read. */
export function readFileOrNull(path: string): { readonly bytes: Buffer; readonly written: number } | null {
  try {
    return { bytes: readFileSync(path), written: statSync(path).mtimeMs };
  } catch {
    return null;
  }
}

/** Makes the content of a file, or the names in a directory, outlive a power cut. */
export function fsyncPath(path: string): void {
  const opened = openSync(path, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

function linkIfExists(path: string, name: string): void {
  if (existsSync(path)) linkSync(path, name);
}

function unusedName(name: string): string {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? name : `${name}.${number}`;
    if (!existsSync(candidate) && !existsSync(`${candidate}-wal`)) return candidate;
  }
}

/** Bytes: room for the answers to some twenty refreshes that are under way when the disk fills up. */
export const BALLAST_BYTES = 256 * 1024;

/** A file that only holds room on the disk: given up when the answer to a refresh finds no other. */
export class Ballast {
  readonly #path: string;
  #isReserved: boolean;

  /** @param path the file; one that an earlier run left is taken over */
  constructor(path: string) {
    this.#path = path;
    this.#isReserved = statSync(path, { throwIfNoEntry: false })?.size === BALLAST_BYTES;
  }

  /**
   * Makes the file, where it is not there yet or was given up.
   * @throws the file system's error, where there is no room for it
   */
  reserve(): void {
    if (this.#isReserved) return;
    try {
      writeFileSync(this.#path, Buffer.alloc(BALLAST_BYTES), { mode: 0o600, flush: true });
      this.#isReserved = true;
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** Makes room. */
  release(): void {
    this.#isReserved = false;
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // On a disk that can't be written nothing is gained.
    }
  }
}

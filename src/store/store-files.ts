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
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The store's files in the state directory. */
export interface StoreFiles {
  readonly directory: string;
  readonly database: string;
  /** SQLite's write-ahead log (WAL). The latest commits may be only here. */
  readonly wal: string;
  /** Another name of a WAL that SQLite must not delete when it closes the database. */
  readonly keptWal: string;
  /** The snapshot of the database. */
  readonly snapshot: string;
  readonly ballast: string;
  /** A complete database that is about to replace a damaged one. */
  readonly replacement: string;
}

/** The paths of the store's files in a directory. */
export function storeFiles(directory: string): StoreFiles {
  const database = join(directory, 'latchkey.db');
  return {
    directory,
    database,
    wal: `${database}-wal`,
    keptWal: `${database}-wal.kept`,
    snapshot: `${database}.copy`,
    ballast: join(directory, 'ballast'),
    replacement: `${database}.new`,
  };
}

/** The size of a file in bytes; null if there is no file. */
export function fileSize(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}

/** @throws the file system's error if the directory can't be written */
export function checkWritable({ directory }: StoreFiles): void {
  accessSync(directory, constants.R_OK | constants.W_OK | constants.X_OK);
}

/** Gives a kept WAL its own name again. */
export function restoreKeptWal({ wal, keptWal }: StoreFiles): void {
  if (!existsSync(keptWal)) return;
  if (existsSync(wal)) rmSync(keptWal);
  else renameSync(keptWal, wal);
}

/** Completes an {@link atomicReplace} that a crash interrupted, which shows in the missing database. */
export function finishReplacement({ database, wal, replacement, directory }: StoreFiles): void {
  if (!existsSync(replacement)) return;
  if (existsSync(database)) {
    rmSync(replacement, { force: true });
    return;
  }
  rmSync(wal, { force: true });
  renameSync(replacement, database);
  fsyncPath(directory);
}

/**
 * Replaces a damaged database, which is kept under another name. A crash leaves either database, or what
 * {@link finishReplacement} needs.
 * @param instant for the new name of the damaged one, in RFC 3339
 * @returns where the damaged one is now; null if there was none
 * @throws the file system's error; then nothing has changed
 */
export function atomicReplace(files: StoreFiles, bytes: Uint8Array, instant: string): string | null {
  const { database, wal, replacement, directory } = files;
  try {
    writeFileSync(replacement, bytes, { mode: 0o600, flush: true });
  } catch (error) {
    rmSync(replacement, { force: true });
    throw error;
  }
  const aside = unusedName(`${database}.damaged-${instant.replaceAll(/[:.]/g, '-')}`);
  // SQLite finds the WAL by the name of the database.
  linkIfExists(database, aside);
  linkIfExists(wal, `${aside}-wal`);
  rmSync(database, { force: true });
  finishReplacement(files);
  fsyncPath(directory);
  return existsSync(aside) || existsSync(`${aside}-wal`) ? aside : null;
}

/** Copies the database and its WAL to another directory. @throws the file system's error */
export function copyStoreFiles(files: StoreFiles, directory: string): StoreFiles {
  const copies = storeFiles(directory);
  copyFileSync(files.database, copies.database);
  if (existsSync(files.wal)) copyFileSync(files.wal, copies.wal);
  return copies;
}

/** The bytes of a file and when it was written, in ms since 1970; null if it can't be read. */
export function readFileOrNull(path: string): { readonly bytes: Buffer; readonly written: number } | null {
  try {
    return { bytes: readFileSync(path), written: statSync(path).mtimeMs };
  } catch {
    return null;
  }
}

/** Makes the content of a file, or the names in a directory, survive a power cut. */
export function fsyncPath(path: string): void {
  const opened = openSync(path, 'r');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/** Like {@link fsyncPath}, in libuv's thread pool. */
export async function syncPath(path: string): Promise<void> {
  const opened = await open(path);
  try {
    await opened.sync();
  } finally {
    await opened.close();
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

/** In bytes: room for the responses to some twenty refreshes that are in progress when the disk fills up. */
export const BALLAST_BYTES = 256 * 1024;

/** A file that only reserves disk space. It is deleted when there is no other room for the response to a refresh. */
export class Ballast {
  readonly #path: string;
  #isReserved: boolean;

  /** @param path the file; one of an earlier run is used again */
  constructor(path: string) {
    this.#path = path;
    this.#isReserved = statSync(path, { throwIfNoEntry: false })?.size === BALLAST_BYTES;
  }

  /**
   * Creates the file if it does not exist.
   * @throws the file system's error if there is no room for it
   */
  async reserve(): Promise<void> {
    if (this.#isReserved) return;
    try {
      await writeFile(this.#path, Buffer.alloc(BALLAST_BYTES), { mode: 0o600, flush: true });
      this.#isReserved = true;
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** Deletes the file to make room. */
  release(): void {
    this.#isReserved = false;
    try {
      rmSync(this.#path, { force: true });
    } catch {
      // On a disk that can't be written this frees nothing.
    }
  }
}

import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, messageOf } from '../../core/failure.ts';
import { systemTimers } from '../../system/clock.ts';
import { jweSealing, type Sealing, STORE_KEY_BYTES } from '../keys/sealing.ts';
import { decodeKey, loadNextStoreKey, loadStoreKey, type NextKey, nextKeyPath } from '../keys/store-key.ts';
import { fileSize, fsyncPath } from '../store-files.ts';
import { toStoreFailure } from './database.ts';
import { openStore } from './open-store.ts';
import { canOpenSnapshot } from './snapshot.ts';
import type { SqliteStore } from './sqlite-store.ts';

/** A store, and the rotation of its key. */
interface OpenedStore {
  readonly store: SqliteStore;
  readonly keyRotation: KeyRotation;
}

/**
 * Opens the store in a state directory with whichever of its keys opens it.
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`
 * @throws Failure as {@link loadStoreKey}, {@link loadNextStoreKey} and {@link openStore}
 */
export async function openStoreWithKeys(
  directory: string,
  credentials: string | undefined,
  { freshKey, wall }: { readonly freshKey: () => string; readonly wall: () => number },
): Promise<OpenedStore> {
  const key = await loadStoreKey(directory, credentials, freshKey);
  const next = await loadNextStoreKey(directory, credentials);
  const nextSealing = next.key && jweSealing(next.key);
  const others = nextSealing === null ? [] : [nextSealing];
  const store = await openStore(directory, jweSealing(key), wall, systemTimers, others);
  return { store, keyRotation: new KeyRotation(store, next, nextSealing, freshKey) };
}

/** The result of a rotation. */
export interface KeyRotationResult {
  /** Files in the state directory that only the old key opens: older stores, kept for people. */
  readonly leftovers: readonly string[];
  /** Why no new snapshot was written; null if it was. A snapshot that only the old key opens is deleted then. */
  readonly snapshotProblem: string | null;
  /** Whether the key is a credential, so that the owner must replace the old one with it. */
  readonly isCredential: boolean;
}

/**
 * Replaces the store's key:
 * 1. The new key is written to disk as `store.key.next` before anything is sealed with it.
 * 2. One transaction seals all rows with the new key.
 * 3. A new snapshot is written.
 * 4. The new key is renamed to `store.key`.
 *
 * If this is interrupted, there always is a key for the database and for its snapshot. The next start uses the key that
 * opens the database ({@link openStore}), and continues from there.
 */
export class KeyRotation {
  readonly #store: SqliteStore;
  readonly #nextKey: NextKey;
  readonly #generateKey: () => string;
  readonly #nextSealing: Sealing | null;
  #isRunning = false;

  /**
   * @param nextKey as it was when the store was opened
   * @param nextSealing the sealing of `nextKey`; null if there is none
   */
  constructor(store: SqliteStore, nextKey: NextKey, nextSealing: Sealing | null, generateKey: () => string) {
    this.#store = store;
    this.#nextKey = nextKey;
    this.#nextSealing = nextSealing;
    this.#generateKey = generateKey;
  }

  /** Whether the store is sealed with the credential `store.key.next`, which must replace `store.key`. */
  get needsCredentialRename(): boolean {
    return this.#nextKey.isCredential && this.#store.sealing === this.#nextSealing;
  }

  /**
   * Completes an interrupted rotation when the hub starts.
   * @param makeSnapshot writes a new snapshot
   * @returns the result; null if the store's key has not changed
   * @throws Failure `store_unwritable`: the next start continues
   */
  async resumeInterrupted(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult | null> {
    if (this.#store.writeProblem !== null) return null;
    if (this.needsCredentialRename) return { ...(await this.#replaceSnapshot(makeSnapshot)), isCredential: true };
    if (this.#nextKey.isCredential || !existsSync(this.#nextKeyPath)) return null;
    if (this.#store.sealing === this.#nextSealing) return this.#installNextKey(makeSnapshot);
    await this.#discardNextKey();
    return null;
  }

  /**
   * Replaces the store's key.
   * @param makeSnapshot writes a new snapshot
   * @throws Failure `not_allowed` if a rotation is not possible, with what to do; `store_unwritable`,
   *   `store_unreadable`: the store still has the old key then, unless the message says otherwise
   */
  async rotate(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    if (this.#isRunning)
      throw new Failure('not_allowed', 'a rotation of the store key is already in progress: wait until it has ended');
    if (this.#store.writeProblem !== null) {
      throw new Failure(
        'store_unwritable',
        `the store can't be sealed with a new key: ${this.#store.writeProblem}; check the disk`,
      );
    }
    this.#isRunning = true;
    try {
      return await (this.#nextKey.isCredential
        ? this.#rotateToCredential(makeSnapshot)
        : this.#rotateKeyFile(makeSnapshot));
    } finally {
      this.#isRunning = false;
    }
  }

  async #rotateKeyFile(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    // Never reuse the key of an earlier attempt: the SD card may have been copied meanwhile. Until the WAL is empty,
    // that key may still be needed.
    await this.#discardNextKey();
    const text = this.#generateKey();
    const key = decodeKey(text);
    if (key === null) throw new Failure('unexpected', `the new store key is not ${STORE_KEY_BYTES} bytes in base64url`);
    try {
      writeFileSync(this.#nextKeyPath, `${text}\n`, { mode: 0o600, flush: true });
      fsyncPath(this.#store.files.directory);
      await this.#store.reseal(jweSealing(key));
    } catch (error) {
      await this.#tryDiscardNextKey();
      throw toStoreFailure(error, this.#store.files.database);
    }
    return this.#installNextKey(makeSnapshot);
  }

  async #rotateToCredential(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    if (this.#nextSealing === null || this.needsCredentialRename) {
      throw new Failure(
        'not_allowed',
        this.needsCredentialRename
          ? 'the store is already sealed with the credential store.key.next: replace store.key with that file'
          : 'the store key is a systemd credential, which the hub can\'t change: put a new one beside it as "store.key.next" (see docs/stolen-card.md), restart the service, and run this command again',
      );
    }
    await this.#store.reseal(this.#nextSealing);
    return { ...(await this.#replaceSnapshot(makeSnapshot)), isCredential: true };
  }

  async #installNextKey(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    const { directory } = this.#store.files;
    const result = await this.#replaceSnapshot(makeSnapshot);
    try {
      // A hub that was started meanwhile may have renamed it.
      if (existsSync(this.#nextKeyPath)) renameSync(this.#nextKeyPath, join(directory, 'store.key'));
      fsyncPath(directory);
    } catch (cause) {
      throw new Failure(
        'store_unwritable',
        `the store is sealed with the new key, but that key is still in ${this.#nextKeyPath}: check the disk and restart the hub, which then renames it`,
        { cause },
      );
    }
    return { ...result, isCredential: false };
  }

  /**
   * Replaces a snapshot that only the old key opens, which is useful only to a thief. A snapshot that the store's key
   * opens was written by an earlier attempt, after the database was compacted.
   */
  async #replaceSnapshot(makeSnapshot: () => Promise<void>): Promise<Omit<KeyRotationResult, 'isCredential'>> {
    if (canOpenSnapshot(this.#store)) return { leftovers: this.#findLeftovers(), snapshotProblem: null };
    try {
      await this.#store.compact();
      await makeSnapshot();
      return { leftovers: this.#findLeftovers(), snapshotProblem: null };
    } catch (error) {
      // It may already be the new snapshot, if the disk failed only after that.
      if (!canOpenSnapshot(this.#store)) rmSync(this.#store.files.snapshot, { force: true });
      return { leftovers: this.#findLeftovers(), snapshotProblem: messageOf(error) };
    }
  }

  #findLeftovers(): string[] {
    const { directory, database } = this.#store.files;
    const upgrades = join(directory, 'upgrades');
    const damaged = readdirSync(directory).map((name) => join(directory, name));
    return [
      ...damaged.filter((path) => path.startsWith(`${database}.damaged-`)),
      ...(fileSize(upgrades) === null ? [] : [upgrades]),
    ];
  }

  /**
   * Removes a key that was never used. The WAL is emptied first: a failed commit may still be in it, and would become
   * valid after a crash.
   */
  async #discardNextKey(): Promise<void> {
    try {
      await this.#store.checkpoint();
      rmSync(this.#nextKeyPath, { force: true });
      fsyncPath(this.#store.files.directory);
    } catch (error) {
      throw toStoreFailure(error, this.#store.files.database);
    }
  }

  async #tryDiscardNextKey(): Promise<void> {
    try {
      await this.#discardNextKey();
    } catch {
      // The next attempt begins with this, and the next start too.
    }
  }

  get #nextKeyPath(): string {
    return nextKeyPath(this.#store.files.directory);
  }
}

import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Failure, messageOf } from '../../core/failure.ts';
import { systemTimers } from '../../system/clock.ts';
import { canOpenSnapshot } from '../backup/snapshot.ts';
import { toStoreFailure } from '../database/database.ts';
import { fileSize, fsyncPath } from '../database/store-files.ts';
import { openStore } from '../open-store.ts';
import type { SqliteStore } from '../sqlite-store.ts';
import { jweSealing, type Sealing } from './sealing.ts';
import { decodeKey, loadNextStoreKey, loadStoreKey, type NextKey, nextKeyPath } from './store-key.ts';

/** A store with what puts another key in the place of its own. */
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

/** What came of a rotation. */
export interface KeyRotationResult {
  /** Files in the state directory that only the key before opens: stores of before, kept for people. */
  readonly leftovers: readonly string[];
  /** Why the daily copy could not be made anew; null where it was. One that only the key before opens is gone then. */
  readonly snapshotProblem: string | null;
  /** Whether the key is a credential, whose owner puts it in the place of the one before. */
  readonly isCredential: boolean;
}

/**
 * Puts another key in the place of the store's. The new one is on the disk as `store.key.next` before anything is sealed with it;
 * then one transaction seals everything anew; then the daily copy is made anew; then the new key takes the name of the one
 * before. Whenever this is cut short, there is a key for the database and for its copy: the next start takes the one that opens
 * the database ({@link openStore}), and goes on from there.
 */
export class KeyRotation {
  readonly #store: SqliteStore;
  readonly #nextKey: NextKey;
  readonly #generateKey: () => string;
  readonly #nextSealing: Sealing | null;
  #isRunning = false;

  /**
   * @param nextKey as it was when the store was opened
   * @param nextSealing what `next` seals with; null where there is none
   */
  constructor(store: SqliteStore, nextKey: NextKey, nextSealing: Sealing | null, generateKey: () => string) {
    this.#store = store;
    this.#nextKey = nextKey;
    this.#nextSealing = nextSealing;
    this.#generateKey = generateKey;
  }

  /** Whether the store is sealed with the credential `store.key.next`, which is to become `store.key`. */
  get needsCredentialRename(): boolean {
    return this.#nextKey.isCredential && this.#store.sealing === this.#nextSealing;
  }

  /**
   * At the start: ends a rotation that was cut short.
   * @param makeSnapshot makes the daily copy anew
   * @returns what came of it; null where the store's key is not another one by it
   * @throws Failure `store_unwritable`: the next start goes on
   */
  async resumeInterrupted(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult | null> {
    if (this.#store.writeProblem !== null) return null;
    if (this.needsCredentialRename) return { ...(await this.#replaceSnapshot(makeSnapshot)), isCredential: true };
    if (this.#nextKey.isCredential || !existsSync(this.#nextKeyPath)) return null;
    if (this.#store.sealing === this.#nextSealing) return this.#installNextKey(makeSnapshot);
    this.#discardNextKey();
    return null;
  }

  /**
   * @param makeSnapshot makes the daily copy anew
   * @throws Failure `not_allowed` where it can't be done, with what to do; `store_unwritable`, `store_unreadable`: then the key of
   *   before is the store's, unless the message says otherwise
   */
  async rotate(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    if (this.#isRunning) throw new Failure('not_allowed', 'the store key is being rotated already: wait for that');
    if (this.#store.writeProblem !== null) {
      throw new Failure(
        'store_unwritable',
        `the store can't be sealed anew: ${this.#store.writeProblem}; see to the disk`,
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
    // One that an attempt has left may be on a card that was copied meanwhile, and may still be wanted until nothing is in the journal.
    this.#discardNextKey();
    const text = this.#generateKey();
    const key = decodeKey(text);
    if (key === null) throw new Failure('unexpected', 'the new store key is none');
    try {
      writeFileSync(this.#nextKeyPath, `${text}\n`, { mode: 0o600, flush: true });
      fsyncPath(this.#store.files.directory);
      this.#store.reseal(jweSealing(key));
    } catch (error) {
      this.#tryDiscardNextKey();
      throw toStoreFailure(error, this.#store.files.database);
    }
    return this.#installNextKey(makeSnapshot);
  }

  async #rotateToCredential(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    if (this.#nextSealing === null || this.needsCredentialRename) {
      throw new Failure(
        'not_allowed',
        this.needsCredentialRename
          ? 'the store is sealed with the credential store.key.next already: put that file in the place of store.key'
          : 'the store key is a systemd credential, which the hub can\'t change: put a new one beside it as "store.key.next" (see docs/stolen-card.md), restart the service, and run this command again',
      );
    }
    this.#store.reseal(this.#nextSealing);
    return { ...(await this.#replaceSnapshot(makeSnapshot)), isCredential: true };
  }

  async #installNextKey(makeSnapshot: () => Promise<void>): Promise<KeyRotationResult> {
    const { directory } = this.#store.files;
    const made = await this.#replaceSnapshot(makeSnapshot);
    try {
      // A hub that was started meanwhile may have done it.
      if (existsSync(this.#nextKeyPath)) renameSync(this.#nextKeyPath, join(directory, 'store.key'));
      fsyncPath(directory);
    } catch (cause) {
      throw new Failure(
        'store_unwritable',
        `the store is sealed with the new key, but that is still in ${this.#nextKeyPath}: see to the disk and restart the hub, which then puts it in place`,
        { cause },
      );
    }
    return { ...made, isCredential: false };
  }

  /**
   * A copy that only the key before opens is of no use to anybody but a thief. One that the store's key opens was made by an
   * attempt before, after the database's file was written anew.
   */
  async #replaceSnapshot(makeSnapshot: () => Promise<void>): Promise<Omit<KeyRotationResult, 'isCredential'>> {
    if (canOpenSnapshot(this.#store)) return { leftovers: this.#findLeftovers(), snapshotProblem: null };
    try {
      this.#store.compact();
      await makeSnapshot();
      return { leftovers: this.#findLeftovers(), snapshotProblem: null };
    } catch (error) {
      // It may be the new one already, where the disk failed only then.
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
   * Removes a key that was never used. A commit that failed may be in the journal all the same, where a crash would bring it to
   * life: the journal is emptied first.
   */
  #discardNextKey(): void {
    try {
      this.#store.checkpoint();
      rmSync(this.#nextKeyPath, { force: true });
      fsyncPath(this.#store.files.directory);
    } catch (error) {
      throw toStoreFailure(error, this.#store.files.database);
    }
  }

  #tryDiscardNextKey(): void {
    try {
      this.#discardNextKey();
    } catch {
      // The next attempt begins with this, and so does the next start.
    }
  }

  get #nextKeyPath(): string {
    return nextKeyPath(this.#store.files.directory);
  }
}

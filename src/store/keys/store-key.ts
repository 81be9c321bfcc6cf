import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure } from '../../core/failure.ts';
import { syncDirectory, writeNewFileAtomically } from '../../system/bounded-file.ts';
import { secretLocation, systemdCredentialPaths } from '../../system/secret-file.ts';
import { fileSize, storeFiles } from '../store-files.ts';
import { STORE_KEY_BYTES } from './sealing.ts';

/**
 * Loads the key that seals the store: the systemd credential `store.key` if there is one, else the file of that name in
 * the state directory, which is created at the first start. Either contains 32 bytes as base64url text.
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`
 * @throws Failure `store_key_wrong`
 */
export async function loadStoreKey(
  stateDirectory: string,
  credentials: string | undefined,
  freshKey: () => string,
): Promise<Uint8Array> {
  const existing = await findStoreKey(stateDirectory, credentials);
  if (existing !== null) return existing;
  const path = storeKeyPath(stateDirectory);
  const { database, snapshot } = storeFiles(stateDirectory);
  for (const sealed of [database, snapshot]) {
    if (fileSize(sealed) === null) continue;
    throw new Failure(
      'store_key_wrong',
      `the store key ${path} is missing, and ${sealed} can't be opened without it: restore the key, or restore a copy of the state directory`,
    );
  }
  const newKey = freshKey();
  await writeNewFileAtomically(path, `${newKey}\n`).catch((cause: unknown) => {
    throw unwritableKey(path, cause);
  });
  return parseKey(path, newKey);
}

/**
 * The key of {@link loadStoreKey}, which is not created; null if there is none.
 * @throws Failure `store_key_wrong`
 */
async function findStoreKey(stateDirectory: string, credentials: string | undefined): Promise<Uint8Array | null> {
  const credential = await readFirstKey(systemdCredentialPaths(credentials, 'store.key'));
  if (credential !== null) return parseKey(secretLocation('store.key', stateDirectory, credentials), credential.text);
  const path = storeKeyPath(stateDirectory);
  const text = await readKeyFile(path);
  if (text === null) return null;
  const mode = (await stat(path)).mode & 0o777;
  if ((mode & 0o077) === 0) return parseKey(path, text);
  throw new Failure('store_key_wrong', `the store key ${path} is accessible to other users: run "chmod 600 ${path}"`);
}

/** The file of the store's key, if that is no credential. */
function storeKeyPath(stateDirectory: string): string {
  return join(stateDirectory, 'store.key');
}

/** The failure if a new key can't be written. */
function unwritableKey(path: string, cause: unknown): Failure {
  return new Failure(
    'state_dir_unusable',
    `the store key ${path} can't be written: give its directory to the user that the hub runs as, and see that it has room`,
    { cause },
  );
}

/** The key that is to replace the store's key, and the source of both. */
export interface NextKey {
  /** Null if there is none. */
  readonly key: Uint8Array | null;
  /** Whether the store's key is a systemd credential, which the hub can't write. */
  readonly isCredential: boolean;
}

/**
 * Loads the key `store.key.next` beside the one of {@link loadStoreKey}: a file that an interrupted rotation has left,
 * or a credential that the owner has put there. An incomplete file was never used.
 * @throws Failure `store_key_wrong` if a credential is not a valid key
 */
export async function loadNextStoreKey(stateDirectory: string, credentials: string | undefined): Promise<NextKey> {
  const credential = await readFirstKey(systemdCredentialPaths(credentials, 'store.key'));
  if (credential === null) {
    const text = await readKeyFile(nextKeyPath(stateDirectory));
    return { key: text === null ? null : decodeKey(text), isCredential: false };
  }
  const next = await readFirstKey(systemdCredentialPaths(credentials, 'store.key.next'));
  return { key: next && parseKey(next.path, next.text), isCredential: true };
}

/** Where a rotation keeps the new key until that replaces the store's key. */
export function nextKeyPath(stateDirectory: string): string {
  return join(stateDirectory, 'store.key.next');
}

async function readFirstKey(
  paths: readonly string[],
): Promise<{ readonly path: string; readonly text: string } | null> {
  for (const path of paths) {
    const text = await readKeyFile(path);
    if (text !== null) return { path, text };
  }
  return null;
}

/** Null if there is no file. An unreadable file must not count as missing, because a new key would be created. */
async function readKeyFile(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return null;
    // Typical after root has restored the file by hand.
    const advice =
      cause.code === 'EACCES'
        ? `: give it to the user of its directory ("chown --reference=${dirname(path)}/. ${path}")`
        : '';
    throw new Failure('store_key_wrong', `the store key ${path} can't be read${advice}`, { cause });
  });
}

function parseKey(path: string, text: string): Uint8Array {
  const key = decodeKey(text);
  if (key !== null) return key;
  throw new Failure(
    'store_key_wrong',
    `the store key ${path} is not ${STORE_KEY_BYTES} bytes in base64url: restore the right one`,
  );
}

/** Decodes a store key; null if the text is not one. */
export function decodeKey(text: string): Uint8Array | null {
  const key = Buffer.from(text.trim(), 'base64url');
  return key.length === STORE_KEY_BYTES ? key : null;
}

/** What is needed to find the key of a site's store, or to create it. */
interface SiteKeyOptions {
  readonly stateDirectory: string;
  /** systemd's `$CREDENTIALS_DIRECTORY`. */
  readonly credentials: string | undefined;
  /** A new key as text. */
  freshKey(): string;
}

/**
 * Opens the store of a site with the key that all its hubs have: the credential or the file `store.key`. Only the first
 * hub of an empty site may have none yet. The new key is on disk, as a draft, before anything is sealed with it.
 * @param open opens the store, and rejects with a Failure `store_key_wrong` if it is sealed with another key
 * @throws Failure `store_key_wrong`, `state_dir_unusable`, and those of `open`
 */
export async function openWithSiteKey<Store>(
  { stateDirectory, credentials, freshKey }: SiteKeyOptions,
  open: (key: Uint8Array) => Promise<Store>,
): Promise<Store> {
  const existing = await findStoreKey(stateDirectory, credentials);
  if (existing !== null) return open(existing);
  const path = storeKeyPath(stateDirectory);
  const draft = `${path}.new`;
  const key = await loadOrWriteDraft(draft, freshKey).catch((cause: unknown) => {
    throw unwritableKey(path, cause);
  });
  const store = await open(key).catch(async (error: unknown) => {
    if (!(error instanceof Failure) || error.code !== 'store_key_wrong') throw error;
    await rm(draft, { force: true });
    throw new Failure(
      'store_key_wrong',
      `this hub has no store key, and the site's database has data already: copy the store key of another hub of the site to ${path}, or make it the credential store.key of this hub`,
      { cause: error, includesCause: true },
    );
  });
  // If this fails, the next start finds the draft.
  await rename(draft, path).catch(() => undefined);
  await syncDirectory(stateDirectory).catch(() => undefined);
  return store;
}

/** A draft that an earlier start has left may be what the database is sealed with. */
async function loadOrWriteDraft(path: string, freshKey: () => string): Promise<Uint8Array> {
  const left = await readFile(path, 'utf8').then(decodeKey, () => null);
  if (left !== null) return left;
  const text = freshKey();
  await writeFile(path, `${text}\n`, { mode: 0o600, flush: true });
  const key = decodeKey(text);
  if (key === null) throw new Failure('unexpected', 'a new store key has the wrong length');
  return key;
}

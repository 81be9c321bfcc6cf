import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { Failure } from '../../core/failure.ts';
import { syncDirectory } from '../../system/bounded-file.ts';
import { decodeKey, findStoreKey, storeKeyPath, unwritableKey } from './store-key.ts';

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

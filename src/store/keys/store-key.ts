import { link, open, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure } from '../../core/failure.ts';
import { systemdCredentialPaths } from '../../system/secret-file.ts';
import { fileSize, storeFiles } from '../database/store-files.ts';
import { STORE_KEY_BYTES } from './sealing.ts';

/**
 * The key that the store is sealed with: the systemd credential `store.key` where there is one, else the file of that
 * name in the state directory, made at the first start. Either holds 32 bytes as base64url text.
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`
 * @throws Failure `store_key_wrong`
 */
export async function loadStoreKey(
  stateDirectory: string,
  credentials: string | undefined,
  freshKey: () => string,
): Promise<Uint8Array> {
  const credential = await readFirstKey(systemdCredentialPaths(credentials, 'store.key'));
  if (credential !== null) return parseKey(credential.path, credential.text);
  const path = join(stateDirectory, 'store.key');
  const kept = await readKeyFile(path);
  if (kept !== null) {
    const mode = (await stat(path)).mode & 0o777;
    if ((mode & 0o077) === 0) return parseKey(path, kept);
    throw new Failure(
      'store_key_wrong',
      `the store key ${path} is open to other users: close it with "chmod 600 ${path}"`,
    );
  }
  const { database, snapshot } = storeFiles(stateDirectory);
  for (const sealed of [database, snapshot]) {
    if (fileSize(sealed) === null) continue;
    throw new Failure(
      'store_key_wrong',
      `the store key ${path} is missing, and ${sealed} can't be opened without it: put the key back, or put back a copy of the state directory`,
    );
  }
  const text = freshKey();
  await writeNewFileAtomically(path, `${text}\n`).catch((cause: unknown) => {
    throw new Failure(
      'state_dir_unusable',
      `the store key ${path} can't be written: give its directory to the user that the hub runs as, and see that it has room`,
      { cause },
    );
  });
  return parseKey(path, text);
}

/** The key that is to take the place of the store's, and where both come from. */
export interface NextKey {
  /** Null where there is none. */
  readonly key: Uint8Array | null;
  /** Whether the store's key is a systemd credential, which the hub can't write. */
  readonly isCredential: boolean;
}

/**
 * The key `store.key.next`, beside the one that {@link loadStoreKey} gives: a file that a rotation has made and that was cut short
 * there, or a credential that its owner has put there. A file that is not whole was never used.
 * @throws Failure `store_key_wrong` where a credential is no key
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

/** Where a rotation keeps the new key until it is the store's. */
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

/** Writes a file that is there whole or not at all, also after a power cut, and never over another. */
async function writeNewFileAtomically(path: string, text: string): Promise<void> {
  const draft = `${path}.new`;
  await writeFile(draft, text, { mode: 0o600, flush: true });
  await link(draft, path);
  await unlink(draft);
  const directory = await open(dirname(path));
  await directory.sync().finally(() => directory.close());
}

/** Null where there is none. One that is there and can't be read must not be taken for none: another would be made. */
async function readKeyFile(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'ENOENT') return null;
    // Root has put it back by hand.
    const cure =
      cause.code === 'EACCES'
        ? `: give it to the user of its directory ("chown --reference=${dirname(path)}/. ${path}")`
        : '';
    throw new Failure('store_key_wrong', `the store key ${path} can't be read${cure}`, { cause });
  });
}

function parseKey(path: string, text: string): Uint8Array {
  const key = decodeKey(text);
  if (key !== null) return key;
  throw new Failure(
    'store_key_wrong',
    `the store key ${path} is not ${STORE_KEY_BYTES} bytes in base64url: put the right one back`,
  );
}

/** Null where the text is no key. */
export function decodeKey(text: string): Uint8Array | null {
  const key = Buffer.from(text.trim(), 'base64url');
  return key.length === STORE_KEY_BYTES ? key : null;
}

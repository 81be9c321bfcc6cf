import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readBoundedFile } from '../system/bounded-file.ts';
import { type CredentialSource, execProgram } from './systemd-unit.ts';

/** Bytes of a credential: systemd takes no more (systemd.exec(5)). */
const MAX_CREDENTIAL_BYTES = 1 << 20;
/** How long systemd-creds may take to decrypt one, in ms. */
const DECRYPT_TIMEOUT = 4000;
/** The store's key has an order of its own in which its files are changed (docs/stolen-card.md). */
const STORE_KEY_NAME = /(^|_)store\.key(\.next)?$/;

/**
 * The files whose credentials the service was started with another content of: systemd reads them once, and a hub that reloads its
 * configuration gets the old ones. Null where this user may not look.
 * @param sources what the unit loads
 * @param loaded where systemd has put it: `loadedCredentialsDirectory`
 */
export async function findChangedCredentials(
  sources: readonly CredentialSource[],
  env: NodeJS.ProcessEnv,
  loaded: string,
): Promise<string[] | null> {
  const names = await readdir(loaded).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? [] : null));
  if (names === null) return null;
  const changed: string[] = [];
  for (const name of names.filter((one) => !STORE_KEY_NAME.test(one))) {
    const source = sourceOf(name, sources);
    if (source === null) continue;
    const now = source.isEncrypted ? await decryptCredential(name, source.path, env) : await readText(source.path);
    // One that is gone was mostly taken away because nothing names it any more.
    if (now !== null && now !== (await readText(join(loaded, name)))) changed.push(source.path);
  }
  return changed;
}

/** What is said of files that have another content by now. */
export function restartNeededText(files: readonly string[]): string {
  return `the service was started with another content of ${files.join(', ')}, and only a restart takes that over: sudo systemctl restart latchkey`;
}

/** The file that systemd has made a credential of; null where none is known. */
function sourceOf(name: string, sources: readonly CredentialSource[]): CredentialSource | null {
  const source = sources.find(({ id }) => id === name) ?? sources.find(({ id }) => name.startsWith(`${id}_`));
  if (source === undefined || !source.path.startsWith('/')) return null;
  return source.id === name ? source : { ...source, path: join(source.path, name.slice(source.id.length + 1)) };
}

function readText(path: string): Promise<string | null> {
  return readBoundedFile(path, MAX_CREDENTIAL_BYTES).catch(() => null);
}

function decryptCredential(name: string, path: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  return execProgram(
    'systemd-creds',
    ['decrypt', `--name=${name}`, path, '-'],
    AbortSignal.timeout(DECRYPT_TIMEOUT),
    env,
  );
}

import { readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { readBoundedFile } from '../system/bounded-file.ts';
import { type CredentialSource, execProgram } from './systemd-unit.ts';

/** The most bytes of a credential that systemd accepts (systemd.exec(5)). */
const MAX_CREDENTIAL_BYTES = 1 << 20;
/** How long systemd-creds may take to decrypt a credential, in ms. */
const DECRYPT_TIMEOUT = 4000;
/** The store's key is left out: during its rotation the files differ on purpose (docs/stolen-card.md). */
const STORE_KEY_NAME = /(^|_)store\.key(\.next)?$/;

/**
 * The credential files that were changed after the service was started. systemd reads them only at the start, so a
 * reload of the configuration still gets the old content. Null if this user has no permission to check.
 * @param sources the credentials that the unit loads
 * @param loaded the directory of the loaded credentials: `loadedCredentialsDirectory`
 */
export async function findChangedCredentials(
  sources: readonly CredentialSource[],
  env: NodeJS.ProcessEnv,
  loaded: string,
): Promise<string[] | null> {
  const names = await readdir(loaded).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? [] : null));
  if (names === null) return null;
  const changed: string[] = [];
  for (const name of names.filter((each) => !STORE_KEY_NAME.test(each))) {
    const source = sourceOf(name, sources);
    if (source === null) continue;
    const current = source.isEncrypted ? await decryptCredential(name, source.path, env) : await readText(source.path);
    // A missing file was probably deleted because nothing uses it any more.
    if (current !== null && current !== (await readText(join(loaded, name)))) changed.push(source.path);
  }
  return changed;
}

/** The message for credential files that were changed after the start. */
export function restartNeededText(files: readonly string[]): string {
  return `credentials were changed after the hub was started (${files.join(', ')}): restart it so that it uses them: sudo systemctl restart latchkey`;
}

/**
 * What other users can read of the files that the unit loads: each file, and what to do. A file that is open in a
 * closed directory is not, and one that is encrypted does no harm.
 */
export async function findOpenCredentials(sources: readonly CredentialSource[]): Promise<string[]> {
  const found = sources.map(async ({ path, isEncrypted }) => {
    if (isEncrypted || !path.startsWith('/')) return [];
    const files = await readdir(path, { recursive: true }).catch(() => null);
    const paths = files?.map((name) => join(path, name)) ?? [path];
    const areOpen = await Promise.all(paths.map(isReadableByOthers));
    const open = paths.filter((_, index) => areOpen[index]);
    if (open.length === 0) return [];
    return [`other users can read ${open.join(', ')}: sudo chmod ${files === null ? '600' : '700'} ${path}`];
  });
  return (await Promise.all(found)).flat();
}

/** Whether a file, and every directory above it, is open to users who are neither its owner nor in its group. */
async function isReadableByOthers(file: string): Promise<boolean> {
  let path = await realpath(file).catch(() => null);
  const found = path === null ? null : await stat(path).catch(() => null);
  if (path === null || !found?.isFile() || (found.mode & 0o004) === 0) return false;
  while (path !== '/') {
    path = dirname(path);
    const directory = await stat(path).catch(() => null);
    if (directory === null || (directory.mode & 0o001) === 0) return false;
  }
  return true;
}

/** The file that systemd loaded as this credential; null if it is unknown. */
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

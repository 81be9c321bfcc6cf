import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import { readBoundedFile } from './bounded-file.ts';

/** Bytes of a secret's file. */
const MAX_SECRET = 65_536;
/** What the shipped unit puts before the name of each file of its directory of credentials, as systemd.exec(5) has it. */
const DIRECTORY_PREFIX = 'secrets_';

/**
 * Where a systemd credential may be that goes by this name: one that was loaded by itself, or out of a directory
 * (`LoadCredential=secrets:/etc/latchkey/credentials`).
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`; undefined where there is none
 */
export function systemdCredentialPaths(credentials: string | undefined, name: string): string[] {
  if (credentials === undefined || name.includes('/')) return [];
  return [join(credentials, name), join(credentials, `${DIRECTORY_PREFIX}${name}`)];
}

/**
 * Reads a secret from a file that nobody else can read, or from a systemd credential. One trailing newline is dropped.
 * @param file a path, relative to `directory`, or a credential's name
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`, whose files systemd guards itself
 * @throws Error in words that fit behind the key's name
 */
export async function readSecret(file: string, directory: string, credentials: string | undefined): Promise<Secret> {
  const { text, path } = await readProtectedFile(file, directory, credentials);
  const value = text.replace(/\r?\n$/, '');
  if (value === '' || value.includes('\n')) throw new Error(`${path} must hold the secret alone, on one line`);
  return new Secret(value);
}

/** Where the shipped unit takes credentials from; systemd reads them once, when it starts the service. */
const CREDENTIALS_SOURCE_DIRECTORY = '/etc/latchkey/credentials';
const CREDENTIAL_ADVICE = `put it into ${CREDENTIALS_SOURCE_DIRECTORY}, name it here by its file name alone, and restart the service`;

/**
 * Where a person finds a secret that {@link readSecret} reads: a credential out of the shipped unit's directory where that is
 * taken from, and one that was loaded by itself, from wherever it may be, by its name.
 */
export function secretLocation(file: string, directory: string, credentials: string | undefined): string {
  const [alone, ofDirectory] = systemdCredentialPaths(credentials, file);
  if (alone !== undefined && existsSync(alone)) return file;
  if (ofDirectory !== undefined && existsSync(ofDirectory)) return join(CREDENTIALS_SOURCE_DIRECTORY, file);
  return resolve(directory, file);
}

/** Whether {@link readSecret} reads a systemd credential of this name. @param credentials systemd's `$CREDENTIALS_DIRECTORY` */
export function isSystemdCredential(file: string, credentials: string | undefined): boolean {
  return systemdCredentialPaths(credentials, file).some((path) => existsSync(path));
}

/**
 * What is said of a file that is missing, in words that fit behind the key's name.
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`
 */
export function missingFileMessage(directory: string, credentials: string | undefined): string {
  if (credentials === undefined) return `names a file that is not there; relative paths begin at ${directory}`;
  return `names neither a credential of this service nor a file that is there: ${CREDENTIAL_ADVICE}; relative paths begin at ${directory}`;
}

/** Reads a systemd credential; null where there is none of this name. */
export async function readSystemdCredential(
  name: string,
  credentials: string | undefined,
  most: number,
): Promise<string | null> {
  for (const path of systemdCredentialPaths(credentials, name)) {
    const text = await readBoundedFile(path, most).catch(() => null);
    if (text !== null) return text;
  }
  return null;
}

/**
 * Reads a file that nobody else can read, or a systemd credential; of either, what it is called in messages.
 * @throws Error in words that fit behind the key's name
 */
export async function readProtectedFile(
  file: string,
  directory: string,
  credentials: string | undefined,
): Promise<{ readonly text: string; readonly path: string }> {
  const fromSystemd = await readSystemdCredential(file, credentials, MAX_SECRET);
  if (fromSystemd !== null) return { text: fromSystemd, path: file };
  const path = resolve(directory, file);
  const elsewhere = credentials === undefined ? '' : `: ${CREDENTIAL_ADVICE}`;
  const found = await stat(path).catch(() => null);
  // Not by its name: who took the key for the secret itself has put that there.
  if (found === null) throw new Error(missingFileMessage(directory, credentials));
  if (!found.isFile()) throw new Error(`${path} is no file`);
  if ((found.mode & 0o077) !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
    // A service's own user could not read it either, once it is closed.
    const cure = credentials === undefined ? `; allowed is 0600: chmod 600 ${path}` : elsewhere;
    throw new Error(`${path} is open to other users (mode ${mode})${cure}`);
  }
  const text = await readBoundedFile(path, MAX_SECRET).catch((error: Error) => {
    throw new Error(`${path} can't be read (${error.message})${elsewhere}`);
  });
  return { text, path };
}

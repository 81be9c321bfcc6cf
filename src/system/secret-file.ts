import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Secret } from '../core/secret.ts';
import { readBoundedFile } from './bounded-file.ts';

/** In bytes. */
const MAX_SECRET = 65_536;
/** systemd puts this prefix before the file names of the shipped unit's credential directory (systemd.exec(5)). */
const DIRECTORY_PREFIX = 'secrets_';

/**
 * The possible paths of a systemd credential with this name: loaded on its own, or from a directory
 * (`LoadCredential=secrets:/etc/latchkey/credentials`).
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`; undefined if it is not set
 */
export function systemdCredentialPaths(credentials: string | undefined, name: string): string[] {
  if (credentials === undefined || name.includes('/')) return [];
  return [join(credentials, name), join(credentials, `${DIRECTORY_PREFIX}${name}`)];
}

/** Also what people can't see, and paste along: a byte order mark, no-break spaces and zero-width characters. */
const SURROUNDING_SPACE = /^[\s\u200b-\u200d\u2060]+|[\s\u200b-\u200d\u2060]+$/g;

/** A pasted text without the white space around it. */
export function withoutSurroundingSpace(text: string): string {
  return text.replace(SURROUNDING_SPACE, '');
}

/** `text`: a secret of several lines, as a key in PEM; `url`: a line with a URL that contains a secret. */
export type SecretForm = 'line' | 'text' | 'url';

/**
 * Reads a secret from a systemd credential, or from a file that other users can't read. Removes one trailing newline.
 * @param file a path, relative to `directory`, or a credential's name
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`, whose files systemd protects
 * @param onTrimmed called if there is more white space around the secret, which is removed then; left out if it belongs
 * to the secret
 * @throws Error with a message that fits after the key's name
 */
export async function readSecret(
  file: string,
  directory: string,
  credentials: string | undefined,
  form: SecretForm = 'line',
  onTrimmed?: () => void,
): Promise<Secret> {
  const { text, path } = await readProtectedFile(file, directory, credentials);
  const whole = text.replace(/\r?\n$/, '');
  const value = onTrimmed === undefined ? whole : withoutSurroundingSpace(whole);
  // The end of a key has no meaning.
  if (form === 'text' ? !whole.startsWith(value) : whole !== value) onTrimmed?.();
  if (value === '' || (form !== 'text' && value.includes('\n')))
    throw new Error(`${path} must contain only the secret, on one line`);
  return new Secret(value);
}

/** Where the shipped unit loads credentials from; systemd reads them only when it starts the service. */
const CREDENTIALS_SOURCE_DIRECTORY = '/etc/latchkey/credentials';
const CREDENTIAL_ADVICE = `put the file into ${CREDENTIALS_SOURCE_DIRECTORY}, give only its file name here, and restart the service`;

/** Where container engines mount secrets. In the container image it takes the place of systemd's credentials. */
export const CONTAINER_SECRETS = '/run/secrets';
const CONTAINER_ADVICE = `pass the file as a secret of the container ("--secret"), which appears in ${CONTAINER_SECRETS}, and give only its name here`;

/** What to do about a secret that is not readable as a credential. */
export function credentialAdvice(credentials: string | undefined): string {
  return credentials === CONTAINER_SECRETS ? CONTAINER_ADVICE : CREDENTIAL_ADVICE;
}

/**
 * Where a person finds a secret that {@link readSecret} reads: the source file of a credential from the shipped unit's
 * directory, the name of a credential that was loaded on its own, or the path of a file.
 */
export function secretLocation(file: string, directory: string, credentials: string | undefined): string {
  const [single, fromDirectory] = systemdCredentialPaths(credentials, file);
  if (single !== undefined && existsSync(single)) return credentials === CONTAINER_SECRETS ? single : file;
  if (fromDirectory !== undefined && existsSync(fromDirectory)) return join(CREDENTIALS_SOURCE_DIRECTORY, file);
  return resolve(directory, file);
}

/**
 * Whether {@link readSecret} reads a systemd credential of this name.
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`
 */
export function isSystemdCredential(file: string, credentials: string | undefined): boolean {
  return systemdCredentialPaths(credentials, file).some((path) => existsSync(path));
}

/**
 * The error message for a missing file; it fits after the key's name.
 * @param credentials systemd's `$CREDENTIALS_DIRECTORY`
 */
export function missingFileMessage(directory: string, credentials: string | undefined): string {
  if (credentials === undefined) return `names a file that does not exist; relative paths begin at ${directory}`;
  const credential = credentials === CONTAINER_SECRETS ? 'a secret of this container' : 'a credential of this service';
  return `names neither ${credential} nor an existing file: ${credentialAdvice(credentials)}; relative paths begin at ${directory}`;
}

/** Reads a systemd credential of at most `maxBytes`; null if it can't be read. */
export async function readSystemdCredential(
  name: string,
  credentials: string | undefined,
  maxBytes: number,
): Promise<string | null> {
  for (const path of systemdCredentialPaths(credentials, name)) {
    const text = await readBoundedFile(path, maxBytes).catch(() => null);
    if (text !== null) return text;
  }
  return null;
}

/**
 * Reads a systemd credential, or a file that other users can't read.
 * @returns the text, and the `path` (or the credential's name) for messages
 * @throws Error with a message that fits after the key's name
 */
export async function readProtectedFile(
  file: string,
  directory: string,
  credentials: string | undefined,
): Promise<{ readonly text: string; readonly path: string }> {
  const fromSystemd = await readSystemdCredential(file, credentials, MAX_SECRET);
  if (fromSystemd !== null) return { text: fromSystemd, path: file };
  rejectUnreadableSecret(file, credentials);
  const path = resolve(directory, file);
  const advice = credentials === undefined ? '' : `: ${credentialAdvice(credentials)}`;
  const found = await stat(path).catch(() => null);
  // The message leaves out `file`: somebody may have put the secret itself there by mistake.
  if (found === null) throw new Error(missingFileMessage(directory, credentials));
  if (!found.isFile()) throw new Error(`${path} is not a regular file`);
  if ((found.mode & 0o077) !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
    // Not chmod for a service: its user could not read the file either, if only the owner may.
    const correction = credentials === undefined ? `; allowed is 0600: chmod 600 ${path}` : advice;
    throw new Error(`${path} is open to other users (mode ${mode})${correction}`);
  }
  const text = await readBoundedFile(path, MAX_SECRET).catch((error: Error) => {
    throw new Error(`${path} can't be read (${error.message})${advice}`);
  });
  return { text, path };
}

/** A secret of a container keeps the owner and the mode that it has on the host. systemd's credentials are readable. */
function rejectUnreadableSecret(file: string, credentials: string | undefined): void {
  if (credentials !== CONTAINER_SECRETS) return;
  const found = systemdCredentialPaths(credentials, file).find((path) => existsSync(path));
  if (found === undefined) return;
  const owner = `${process.geteuid?.()}:${process.getegid?.()}`;
  throw new Error(
    `${found} can't be read by the hub, which runs as ${owner}: run "chown ${owner}" for that file on the host, or add "uid=${process.geteuid?.()},mode=0400" to its "--secret"`,
  );
}

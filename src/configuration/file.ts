import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import { readBoundedFile, unreadableFileMessage } from '../system/bounded-file.ts';
import { applyEnvironment, isTable, type RawTable } from './environment-overrides.ts';
import { type AppOptions, isAppOptionsFile, readAppOptions } from './home-assistant-options.ts';

/** The file that is read if the user does not name one. */
const DEFAULT_FILE = '/etc/latchkey/latchkey.toml';
/** The most bytes of the configuration file, and of a file with CAs. */
const MAX_FILE_BYTES = 1 << 20;

/**
 * The file to read: as named by the user, else `LATCHKEY_CONFIG`, else {@link DEFAULT_FILE}. `LATCHKEY_CONFIG` may name
 * several, separated by colons: the first one that exists counts. `named`: the file must exist.
 */
export function locateConfigurationFile(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
): { path: string; named: boolean } {
  const named = file ?? (firstExisting(env['LATCHKEY_CONFIG'] ?? '') || undefined);
  return { path: resolve(named ?? DEFAULT_FILE), named: named !== undefined };
}

/** The last one if none exists, so that the error names it. */
function firstExisting(files: string): string | undefined {
  const each = files.split(delimiter);
  return [files, ...each].find((file) => existsSync(file)) ?? each.at(-1);
}

/** The content of the configuration file, before validation. */
export interface ParsedFile {
  readonly table: RawTable;
  /** The options of the Home Assistant app, if the file contains these; the table is theirs. */
  readonly options?: AppOptions;
}

/**
 * Reads and parses the file: TOML, or the options of the Home Assistant app if its name ends with `.json`. The table is
 * empty if the file is missing and the user did not name it.
 * @throws Failure `config_invalid`
 */
export async function readConfigurationFile(path: string, named: boolean): Promise<ParsedFile> {
  try {
    const text = await readBoundedFile(path, MAX_FILE_BYTES);
    return isAppOptionsFile(path) ? parseOptions(text, path) : { table: await parseToml(text, path) };
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    if (!named && cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return { table: {} };
    if (cause instanceof RangeError) throw new Failure('config_invalid', `the configuration ${path}: ${cause.message}`);
    throw new Failure(
      'config_invalid',
      `the configuration ${path} can't be read: check that it exists and that this user may read it, or name another file`,
      { cause },
    );
  }
}

async function parseToml(text: string, path: string): Promise<RawTable> {
  // Imported only if there is something to parse: for many commands there is no file.
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.split('\n');
    throw new Failure('config_invalid', `${path}, line ${cause.line}: ${reason}; correct that line`);
  }
}

/** Reads a file with CAs in PEM. @throws Error with a message that fits after the key's name */
export async function readCa(path: string): Promise<string> {
  const pem = await readBoundedFile(path, MAX_FILE_BYTES).catch((error: Error) => {
    throw new Error(unreadableFileMessage(path, error));
  });
  if (!pem.includes('-----BEGIN CERTIFICATE-----')) throw new Error(`${path} contains no PEM certificate`);
  return pem;
}

function parseOptions(text: string, path: string): ParsedFile {
  const parsed = parseJson(text);
  if (!isTable(parsed)) {
    // Without the parser's message, which may quote a secret.
    throw new Failure(
      'config_invalid',
      `${path} must contain the app's options as a JSON object; a configuration file in TOML must not end with .json`,
    );
  }
  const options = readAppOptions(parsed);
  return { table: options.table, options };
}

/** Parses JSON; null if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The state directory if the configuration does not set one. */
export function defaultStateDirectory(env: NodeJS.ProcessEnv): string {
  const fromSystemd = env['STATE_DIRECTORY']?.split(':')[0];
  return fromSystemd ?? join(env['XDG_STATE_HOME'] || join(homeDirectory(), '.local/state'), 'latchkey');
}

/** A user whom the machine does not know by name, such as a dynamic one of systemd, has none, and Node.js then throws. */
function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}

/** With a fallback, so that one invalid key does not invalidate the other. */
const optionalText = v.fallback(v.optional(v.string()), undefined);

/**
 * Where the daemon's control socket may be, in the order to try: the system service's before the user's own. If the
 * configuration sets the path, there is only that one, so that a command for one hub never reaches another hub.
 */
export async function controlSocketCandidates(file: string | undefined, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { path, named } = locateConfigurationFile(file, env);
  const { table } = await readConfigurationFile(path, named).catch((error: unknown): ParsedFile => {
    if (named) throw error;
    return { table: {} };
  });
  const raw = applyEnvironment(table, env);
  const hub = v.safeParse(v.looseObject({ control_socket: optionalText, state_dir: optionalText }), raw['hub']);
  const { control_socket, state_dir } = hub.success ? hub.output : {};
  const inStateDirectory = state_dir === undefined ? [] : [join(state_dir, 'control.sock')];
  const absolute = (socket: string) => resolve(dirname(path), socket);
  if (control_socket !== undefined) return [absolute(control_socket)];
  if (inStateDirectory.length > 0 && path !== DEFAULT_FILE) return inStateDirectory.map(absolute);
  // Under systemd the socket is in $RUNTIME_DIRECTORY, wherever the state is.
  const defaults = [
    '/run/latchkey/control.sock',
    ...inStateDirectory,
    join(defaultStateDirectory(env), 'control.sock'),
  ];
  return defaults.map(absolute);
}

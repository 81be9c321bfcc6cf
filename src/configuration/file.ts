import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import * as v from 'valibot';
import { Failure } from '../core/failure.ts';
import { readBoundedFile } from '../system/bounded-file.ts';
import { applyEnvironment, type RawTable } from './environment-overrides.ts';

/** The file that is read if the user names none. */
const DEFAULT_FILE = '/etc/latchkey/latchkey.toml';
/** Bytes of the configuration, and of a file with CAs. */
export const MAX_FILE_BYTES = 1 << 20;

/** The file to read: as named by the user, else `LATCHKEY_CONFIG`, else {@link DEFAULT_FILE}. `named`: it must be there. */
export function locateConfigurationFile(
  file: string | undefined,
  env: NodeJS.ProcessEnv,
): { path: string; named: boolean } {
  const named = file ?? (env['LATCHKEY_CONFIG'] || undefined);
  return { path: resolve(named ?? DEFAULT_FILE), named: named !== undefined };
}

/**
 * Reads the file, as TOML gives it; empty if it is missing and the user did not name it.
 * @throws Failure `config_invalid`
 */
export async function readConfigurationFile(path: string, named: boolean): Promise<RawTable> {
  try {
    return await parseToml(await readBoundedFile(path, MAX_FILE_BYTES), path);
  } catch (cause) {
    if (cause instanceof Failure) throw cause;
    if (!named && cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return {};
    if (cause instanceof RangeError) throw new Failure('config_invalid', `the configuration ${path}: ${cause.message}`);
    throw new Failure(
      'config_invalid',
      `the configuration ${path} can't be read: name one that is there and that this user may read`,
      { cause },
    );
  }
}

async function parseToml(text: string, path: string): Promise<RawTable> {
  // Loaded only if there is something to parse: many commands find no file.
  const { parse, TomlError } = await import('smol-toml');
  try {
    return parse(text);
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause;
    const [reason] = cause.message.split('\n');
    throw new Failure('config_invalid', `${path}, line ${cause.line}: ${reason}; correct that line`);
  }
}

/** Where the state is if the configuration does not say. */
export function defaultStateDirectory(env: NodeJS.ProcessEnv): string {
  const given = env['STATE_DIRECTORY']?.split(':')[0];
  return given ?? join(env['XDG_STATE_HOME'] || join(homedir(), '.local/state'), 'latchkey');
}

/** One that can't be used leaves the others. */
const optionalText = v.fallback(v.optional(v.string()), undefined);

/**
 * Where the daemon's control socket may be, likeliest first: the system service's before the user's own. A configuration
 * that says where leaves no choice, lest a command meant for one hub reach another.
 */
export async function controlSocketCandidates(file: string | undefined, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { path, named } = locateConfigurationFile(file, env);
  const raw = applyEnvironment(
    await readConfigurationFile(path, named).catch((error: unknown) => {
      if (named) throw error;
      return {};
    }),
    env,
  );
  const hub = v.safeParse(v.looseObject({ control_socket: optionalText, state_dir: optionalText }), raw['hub']);
  const { control_socket, state_dir } = hub.success ? hub.output : {};
  const own = state_dir === undefined ? [] : [join(state_dir, 'control.sock')];
  const absolute = (socket: string) => resolve(dirname(path), socket);
  if (control_socket !== undefined) return [absolute(control_socket)];
  if (own.length > 0 && path !== DEFAULT_FILE) return own.map(absolute);
  // Under systemd the socket is in $RUNTIME_DIRECTORY, wherever the state is.
  const usual = ['/run/latchkey/control.sock', ...own, join(defaultStateDirectory(env), 'control.sock')];
  return usual.map(absolute);
}

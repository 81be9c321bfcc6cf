import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';

/** The systemd unit of the hub. */
export interface SystemdUnit {
  /** `active`, `inactive`, `failed`, `activating`, … */
  readonly activeState: string;
  /** `enabled`, `disabled`, `static`, … */
  readonly unitFileState: string;
  /** The result of the last run: `success`, `exit-code`, `watchdog`, … */
  readonly result: string;
  readonly exitStatus: number;
  /** Automatic restarts since it was started. */
  readonly restarts: number;
  /** The process id of the daemon; 0 while it does not run. */
  readonly mainPid: number;
  /** The credentials that the unit loads. Only systemd may be able to read their files. */
  readonly credentials: readonly CredentialSource[];
}

/** A source of credentials of a unit (systemd.exec(5)). */
export interface CredentialSource {
  /** The name of the credential. For a directory: the prefix of the credentials' names, before a `_`. */
  readonly id: string;
  /** The file or directory; empty if systemd searches for it, or the unit contains the value. */
  readonly path: string;
  readonly isEncrypted: boolean;
}

export const UNIT_NAME = 'latchkey.service';

const CREDENTIAL_DIRECTIVE = /^(Load|Set)Credential(Encrypted)?=(?:([^:\s]+)(?::(.*))?)?$/gm;
const PROPERTIES = ['LoadState', 'ActiveState', 'UnitFileState', 'Result', 'ExecMainStatus', 'NRestarts', 'MainPID'];

/** Reads the hub's unit from systemd. Null if there is no systemd, or no such unit. */
export async function readUnit(signal: AbortSignal, env: NodeJS.ProcessEnv): Promise<SystemdUnit | null> {
  const [text, files] = await Promise.all([
    execProgram('systemctl', ['show', UNIT_NAME, `--property=${PROPERTIES.join(',')}`], signal, env),
    execProgram('systemctl', ['cat', UNIT_NAME], signal, env),
  ]);
  const lines = (text ?? '').split('\n').map((line) => line.split('=', 2));
  const property = (key: string) => lines.find(([name]) => name === key)?.[1] ?? '';
  if (property('LoadState') !== 'loaded') return null;
  return {
    activeState: property('ActiveState'),
    unitFileState: property('UnitFileState'),
    result: property('Result'),
    exitStatus: Number(property('ExecMainStatus')),
    restarts: Number(property('NRestarts')),
    mainPid: Number(property('MainPID')),
    // systemd 252 does not show credentials as properties.
    credentials: parseCredentialSources(files ?? ''),
  };
}

/**
 * Parses the credentials from a unit's files, concatenated in their order; a later line replaces an earlier one with
 * the same name.
 */
export function parseCredentialSources(files: string): CredentialSource[] {
  const sources = new Map<string, CredentialSource>();
  for (const [, kind, encrypted, id, value = ''] of files.matchAll(CREDENTIAL_DIRECTIVE)) {
    // An empty directive removes the earlier ones.
    if (id === undefined) sources.clear();
    else sources.set(id, { id, path: kind === 'Load' ? value.trim() : '', isEncrypted: encrypted !== undefined });
  }
  return [...sources.values()];
}

/** The directory with the credentials of the running service. */
const RUNTIME_CREDENTIALS = `/run/credentials/${UNIT_NAME}`;
/** That directory, and the one from which the unit loads them. */
const CREDENTIALS_DIRECTORIES = [RUNTIME_CREDENTIALS, '/etc/latchkey/credentials'];

/**
 * A path to the credentials of the running service that always works: systemd hides their own directory from the
 * commands of `ExecReload=`, even if they run as root.
 */
export function loadedCredentialsDirectory({ mainPid: process }: SystemdUnit): string {
  return `/proc/${process}/root${RUNTIME_CREDENTIALS}`;
}

/**
 * The environment of the service; for a running service it includes the `LATCHKEY_…` variables of its unit, if this
 * user may read them.
 */
export function serviceEnvironment({ mainPid: process }: SystemdUnit, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    STATE_DIRECTORY: '/var/lib/latchkey',
    RUNTIME_DIRECTORY: '/run/latchkey',
    CREDENTIALS_DIRECTORY: CREDENTIALS_DIRECTORIES.find((path) => existsSync(path)) ?? '/etc/latchkey/credentials',
    ...latchkeyVariables(process),
    ...env,
  };
}

/** The `LATCHKEY_…` variables of a process (proc(5), `/proc/pid/environ`); empty if this user may not read them. */
function latchkeyVariables(process: number): NodeJS.ProcessEnv {
  try {
    const all = readFileSync(`/proc/${process}/environ`, 'utf8').split('\0');
    const latchkey = all.filter((variable) => variable.startsWith('LATCHKEY_') && variable.includes('='));
    return Object.fromEntries(latchkey.map((variable) => variable.split(/=(.*)/s, 2)));
  } catch {
    return {};
  }
}

const execFileAsync = promisify(execFile);

/** The most bytes of a program's output. */
const MAX_OUTPUT_BYTES = 4 << 20;

/** Runs a program and returns its standard output; null if the program does not exist, fails, or takes too long. */
export async function execProgram(
  program: string,
  args: readonly string[],
  signal: AbortSignal,
  env: NodeJS.ProcessEnv,
): Promise<string | null> {
  const options = { signal, timeout: 4000, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES, env } as const;
  return execFileAsync(program, args, options).then(
    ({ stdout }) => stdout,
    () => null,
  );
}

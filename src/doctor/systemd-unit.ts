import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';

/** The systemd unit of the hub, as far as it is there. */
export interface SystemdUnit {
  /** `active`, `inactive`, `failed`, `activating`, … */
  readonly activeState: string;
  /** `enabled`, `disabled`, `static`, … */
  readonly unitFileState: string;
  /** Why it ended last: `success`, `exit-code`, `watchdog`, … */
  readonly result: string;
  readonly exitStatus: number;
  /** Automatic restarts since it was started. */
  readonly restarts: number;
  /** The daemon's process; 0 while it does not run. */
  readonly mainPid: number;
  /** What it loads as credentials, which systemd may be the only one to read. */
  readonly credentials: readonly CredentialSource[];
}

/** Something that a unit loads as credentials (systemd.exec(5)). */
export interface CredentialSource {
  /** The credential's name; of a directory's files the beginning of their names, before a `_`. */
  readonly id: string;
  /** The file or directory; empty where systemd looks for it, or the unit itself has the value. */
  readonly path: string;
  readonly isEncrypted: boolean;
}

export const UNIT_NAME = 'latchkey.service';

const CREDENTIAL_DIRECTIVE = /^(Load|Set)Credential(Encrypted)?=(?:([^:\s]+)(?::(.*))?)?$/gm;
const PROPERTIES = ['LoadState', 'ActiveState', 'UnitFileState', 'Result', 'ExecMainStatus', 'NRestarts', 'MainPID'];

/** Asks systemd for the hub's unit. Null where there is no systemd, or no such unit. */
export async function readUnit(signal: AbortSignal, env: NodeJS.ProcessEnv): Promise<SystemdUnit | null> {
  const [text, files] = await Promise.all([
    execProgram('systemctl', ['show', UNIT_NAME, `--property=${PROPERTIES.join(',')}`], signal, env),
    execProgram('systemctl', ['cat', UNIT_NAME], signal, env),
  ]);
  const lines = (text ?? '').split('\n').map((line) => line.split('=', 2));
  const of = (property: string) => lines.find(([name]) => name === property)?.[1] ?? '';
  if (of('LoadState') !== 'loaded') return null;
  return {
    activeState: of('ActiveState'),
    unitFileState: of('UnitFileState'),
    result: of('Result'),
    exitStatus: Number(of('ExecMainStatus')),
    restarts: Number(of('NRestarts')),
    mainPid: Number(of('MainPID')),
    // systemd 252 does not show them as properties.
    credentials: parseCredentialSources(files ?? ''),
  };
}

/** What a unit's files, one after the other, have it load; a later line takes the place of one with the same name. */
export function parseCredentialSources(files: string): CredentialSource[] {
  const found = new Map<string, CredentialSource>();
  for (const [, kind, encrypted, id, value = ''] of files.matchAll(CREDENTIAL_DIRECTIVE)) {
    // An empty one takes back those before it.
    if (id === undefined) found.clear();
    else found.set(id, { id, path: kind === 'Load' ? value.trim() : '', isEncrypted: encrypted !== undefined });
  }
  return [...found.values()];
}

/** Where systemd has the credentials of the running service. */
const RUNTIME_CREDENTIALS = `/run/credentials/${UNIT_NAME}`;
/** The same, and where the unit takes them from. */
const CREDENTIALS_DIRECTORIES = [RUNTIME_CREDENTIALS, '/etc/latchkey/credentials'];

/**
 * Where the credentials that the service was started with are seen from anywhere: systemd hides the directory itself from a command
 * of `ExecReload=`, also from one with all rights.
 */
export function loadedCredentialsDirectory({ mainPid: process }: SystemdUnit): string {
  return `/proc/${process}/root${RUNTIME_CREDENTIALS}`;
}

/** The environment in which the service reads its configuration; of a running one with what its unit sets, where this user may see it. */
export function serviceEnvironment({ mainPid: process }: SystemdUnit, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    STATE_DIRECTORY: '/var/lib/latchkey',
    RUNTIME_DIRECTORY: '/run/latchkey',
    CREDENTIALS_DIRECTORY: CREDENTIALS_DIRECTORIES.find((path) => existsSync(path)) ?? '/etc/latchkey/credentials',
    ...latchkeyVariables(process),
    ...env,
  };
}

/** Those of a process that are for Latchkey (proc(5), `/proc/pid/environ`); none where this user may not know them. */
function latchkeyVariables(process: number): NodeJS.ProcessEnv {
  try {
    const all = readFileSync(`/proc/${process}/environ`, 'utf8').split('\0');
    const own = all.filter((variable) => variable.startsWith('LATCHKEY_') && variable.includes('='));
    return Object.fromEntries(own.map((variable) => variable.split(/=(.*)/s, 2)));
  } catch {
    return {};
  }
}

const execFileAsync = promisify(execFile);

/** Bytes of a program's output. */
const MAX_OUTPUT_BYTES = 4 << 20;

/** What a program of the machine wrote to its standard output; null where it is not there, failed, or took too long. */
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

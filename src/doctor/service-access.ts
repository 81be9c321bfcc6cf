import { existsSync, statSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { applyEnvironment, isTable, type RawTable } from '../configuration/environment-overrides.ts';
import { readConfigurationFile } from '../configuration/file.ts';
import { credentialAdvice, isSystemdCredential } from '../system/secret-file.ts';
import type { DoctorContext } from './context.ts';
import { execProgram } from './systemd-unit.ts';

/** The user of a service that has not started yet: systemd makes one that owns no file. */
const NOBODY = { uid: 65_534, gid: 65_534 };
/** How long the test may take, in ms. */
const TIMEOUT = 3000;
const PRINT_UNREADABLE = 'for file; do test -r "$file" || printf "%s\\n" "$file"; done';

/**
 * The configuration file and the files that it names which root can read, but not the user of the service, each with
 * what to do. Credentials are left out: systemd reads them. Empty without root.
 */
export async function findUnreadableFiles(context: DoctorContext): Promise<string[]> {
  const { configuration, env, isRoot, unit } = context;
  // The service's user owns the state directory, also while the service does not run.
  const owner = await stat(configuration.stateDirectory).catch(() => (unit === null ? null : NOBODY));
  if (!isRoot || owner === null || owner.uid === 0) return [];
  const files = new Map<string, string>([[configuration.file, '']]);
  const { table } = await readConfigurationFile(configuration.file, true).catch(() => ({ table: {} }));
  for (const [key, file] of namedFiles(applyEnvironment(table, env))) {
    if (file === '' || isSystemdCredential(file, env['CREDENTIALS_DIRECTORY'])) continue;
    files.set(resolve(dirname(configuration.file), file), key);
  }
  const databaseCa = configuration.site?.url.tls?.ca ?? null;
  if (databaseCa !== null) files.set(databaseCa, 'sslrootcert');
  const user = [`--reuid=${owner.uid}`, `--regid=${owner.gid}`, '--clear-groups'];
  const tested = [...files.keys()].filter((file) => existsSync(file));
  const args = [...user, 'sh', '-c', PRINT_UNREADABLE, 'sh', ...tested];
  const unreadable = await execProgram('setpriv', args, AbortSignal.timeout(TIMEOUT), env);
  return (unreadable ?? '').split('\n').flatMap((file) => {
    const key = files.get(file);
    return key === undefined
      ? []
      : [`${key}${key && ': '}${file} can't be read by the service: ${advice(key, file, env)}`];
  });
}

/** The keys of a table, and of those in it, that name a file. */
function namedFiles(table: RawTable, prefix = ''): [key: string, file: string][] {
  return Object.entries(table).flatMap(([key, value]): [string, string][] => {
    if (isTable(value)) return namedFiles(value, `${prefix}${key}.`);
    return typeof value === 'string' && /^(.*_)?file$/.test(key) ? [[`${prefix}${key}`, value]] : [];
  });
}

function advice(key: string, file: string, env: NodeJS.ProcessEnv): string {
  const isPublic = /^$|^sslrootcert$|\b(ca|certificate|jwks)_file$/.test(key);
  if (!isPublic) return credentialAdvice(env['CREDENTIALS_DIRECTORY']);
  return (statSync(file).mode & 0o004) === 0
    ? `sudo chmod 644 ${file}`
    : 'move it, because a directory above it is closed to other users';
}

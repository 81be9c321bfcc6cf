import type { Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../core/failure.ts';
import { groupByAppliance } from '../../core/health/condition.ts';
import { checkIntegrity } from '../../store/sqlite/recovery/integrity.ts';
import {
  type CheckResult,
  type CheckResults,
  configurationInvalid,
  fail,
  ok,
  permissionDenied,
  warn,
} from '../check-result.ts';
import { type DoctorContext, isConfigurationKeyValid, isTestMode } from '../context.ts';
import { findChangedCredentials, findOpenCredentials, restartNeededText } from '../credentials.ts';
import { findUnreadableFiles } from '../service-access.ts';
import { loadedCredentialsDirectory } from '../systemd-unit.ts';
import { conditionResult } from './hub.ts';

/** The most files of the state directory that are checked; a hub has fewer. */
const MAX_FILES = 200;

/** Checks whether the state directory and its files belong to the hub, and other users can't read them. */
export async function checkState(context: DoctorContext): Promise<CheckResults> {
  const { configuration, hub, isRoot } = context;
  if (isTestMode(hub)) return ok('in test mode the hub stores nothing: its state is in a temporary directory');
  if (!isConfigurationKeyValid(context, 'hub.state_dir')) return configurationInvalid('the state directory');
  const { stateDirectory: path } = configuration;
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (typeof found === 'string') {
    if (found === 'ENOENT')
      return warn(`${path} (hub.state_dir) does not exist yet: the hub creates it at its first start`);
    return isRoot ? fail(`${path} (hub.state_dir) can't be read (${found}): check the disk`) : permissionDenied(path);
  }
  if (!found.isDirectory())
    return fail(`${path} (hub.state_dir) is not a directory: move that file away, or correct hub.state_dir`);
  if ((found.mode & 0o077) !== 0) {
    return fail(`other users can access ${path} (mode ${octalMode(found)}): sudo chmod 700 ${path}`);
  }
  const names = await readdir(path).catch(() => null);
  if (names === null) return permissionDenied(`the content of ${path}`);
  const failures: CheckResult[] = [];
  for (const name of names.slice(0, MAX_FILES)) {
    const file = join(path, name);
    const stats = await stat(file).catch(() => null);
    if (stats === null || stats.isSocket()) continue;
    if (stats.uid !== found.uid) {
      failures.push(fail(`${file} has another owner than its directory: sudo chown --reference=${path}/. ${file}`));
    } else if ((stats.mode & 0o077) !== 0) {
      failures.push(fail(`other users can access ${file} (mode ${octalMode(stats)}): sudo chmod go= ${file}`));
    }
  }
  return failures.length > 0 ? failures : [ok(`other users have no access to ${path} and its files`)];
}

function octalMode({ mode }: Stats): string {
  return (mode & 0o777).toString(8).padStart(4, '0');
}

/** Checks whether the store is intact. A running hub locks the store, and reports its problems itself. */
export async function checkStore(context: DoctorContext): Promise<CheckResults> {
  const { configuration, hub, isRoot } = context;
  if (hub.kind === 'running') {
    const found =
      groupByAppliance(hub.conditions)
        .get(null)
        ?.filter(({ code }) => code.startsWith('store_')) ?? [];
    if (found.length === 0) return ok('the running hub reports no problem with the store');
    return found.map((condition) => conditionResult(condition));
  }
  if (configuration.site !== null) return ok('the store is the database of the site');
  if (!isConfigurationKeyValid(context, 'hub.state_dir')) return configurationInvalid('the store');
  try {
    const integrity = checkIntegrity(configuration.stateDirectory);
    if (integrity.kind === 'absent') return ok('there is no store yet: the hub creates it at its first start');
    if (integrity.kind === 'whole') return ok('the store is intact (a copy of it was checked)');
    return fail(
      `the store is damaged (${integrity.reason}): start the hub, which repairs what it can; if that does not help, restore a backup ("latchkey restore")`,
    );
  } catch (error) {
    return isRoot ? fail(`the store can't be read: ${messageOf(error)}`) : permissionDenied('the store');
  }
}

/** Checks whether a hub would start with the current configuration. */
export async function checkConfiguration(context: DoctorContext): Promise<CheckResults> {
  const { configuration, configurationFailures, unreadableSecrets, hub, isRoot } = context;
  const stillUsed = hub.kind === 'running' ? '; the running hub still uses the configuration that it read before' : '';
  const problems = configurationFailures.map(messageOf).map((message) => {
    if (!isRoot && message.includes('EACCES')) return warn(`${message}: run this command with sudo`);
    return fail(`${message}${stillUsed}`);
  });
  if (!isTestMode(hub))
    problems.push(...(await findUnreadableFiles(context)).map((text) => fail(`${text}${stillUsed}`)));
  if (problems.length > 0) return problems;
  const { file, portals, connections, appliances } = configuration;
  if (isTestMode(hub))
    return ok(`in test mode the hub has its own portal and state; all other settings are from ${file}, or defaults`);
  const names = portals.map(({ name }) => name).join(', ');
  const summary = `${file}: portals: ${names || 'none'}; declared appliances: ${appliances.length}${connections.length === 0 ? '' : `, connections: ${connections.length}`}`;
  const secrets =
    unreadableSecrets.length === 0 ? [] : [permissionDenied(`the secrets ${unreadableSecrets.join(', ')}`)];
  const warnings = (configuration.warnings ?? []).map((message) => warn(message));
  return [
    ...(warnings.length > 0 ? warnings : [ok(summary)]),
    ...secrets.map((result) => ({ ...result, name: '.secrets' })),
  ];
}

/** Checks whether other users can read the credentials, and whether they were changed after the service was started. */
export async function checkCredentials({ unit, env }: DoctorContext): Promise<CheckResults> {
  if (unit === null || unit.credentials.length === 0) return [];
  const open = await findOpenCredentials(unit.credentials);
  if (open.length > 0) return open.map((text) => fail(text));
  if (unit.mainPid === 0) return [];
  const changed = await findChangedCredentials(unit.credentials, env, loadedCredentialsDirectory(unit));
  if (changed === null) return permissionDenied('changes of the credentials');
  if (changed.length > 0) return warn(restartNeededText(changed));
  return ok('the service uses the current credentials, and other users can read none of them');
}

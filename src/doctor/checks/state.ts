import type { Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../core/failure.ts';
import { groupByAppliance } from '../../core/health/condition.ts';
import { checkIntegrity } from '../../store/recovery/integrity.ts';
import { type CheckResult, configurationInvalid, fail, ok, permissionDenied, warn } from '../check-result.ts';
import { type DoctorContext, hasValidKey, isTestMode } from '../context.ts';
import { findChangedCredentials, restartNeededText } from '../credentials.ts';
import { loadedCredentialsDirectory } from '../systemd-unit.ts';
import { conditionResult } from './hub.ts';

/** Files of the state directory that are looked at; there are never so many. */
const MAX_FILES = 200;

/** Whether what the hub keeps belongs to it, and is closed to everybody else. */
export async function checkState(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub, isRoot } = context;
  if (isTestMode(hub)) return [ok('a hub in test mode keeps nothing: its state is in a temporary directory')];
  if (!hasValidKey(context, 'hub.state_dir')) return [configurationInvalid('the state directory')];
  const { stateDirectory: path } = configuration;
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (typeof found === 'string') {
    if (found === 'ENOENT')
      return [warn(`${path} (hub.state_dir) is not there yet: the hub makes it when it is started first`)];
    return [isRoot ? fail(`${path} (hub.state_dir) can't be looked at (${found})`) : permissionDenied(path)];
  }
  if (!found.isDirectory()) return [fail(`${path} (hub.state_dir) is no directory: move it away`)];
  if ((found.mode & 0o077) !== 0) {
    return [fail(`${path} is open to other users (mode ${octalMode(found)}): sudo chmod 700 ${path}`)];
  }
  const names = await readdir(path).catch(() => null);
  if (names === null) return [permissionDenied(`what is in ${path}`)];
  const faults: CheckResult[] = [];
  for (const name of names.slice(0, MAX_FILES)) {
    const file = join(path, name);
    const there = await stat(file).catch(() => null);
    if (there === null || there.isSocket()) continue;
    if (there.uid !== found.uid) {
      faults.push(fail(`${file} belongs to another user than its directory: sudo chown --reference=${path}/. ${file}`));
    } else if ((there.mode & 0o077) !== 0) {
      faults.push(fail(`${file} is open to other users (mode ${octalMode(there)}): sudo chmod go= ${file}`));
    }
  }
  return faults.length > 0 ? faults : [ok(`${path} and what is in it is closed to other users`)];
}

function octalMode({ mode }: Stats): string {
  return (mode & 0o777).toString(8).padStart(4, '0');
}

/** Whether the store is whole. A running hub keeps it locked, and says itself what is wrong with it. */
export async function checkStore(context: DoctorContext): Promise<CheckResult[]> {
  const { configuration, hub, isRoot } = context;
  if (hub.kind === 'running') {
    const found =
      groupByAppliance(hub.conditions)
        .get(null)
        ?.filter(({ code }) => code.startsWith('store_')) ?? [];
    if (found.length === 0) return [ok('the running hub has the store open, and finds nothing wrong with it')];
    return found.map((condition) => conditionResult(condition));
  }
  if (!hasValidKey(context, 'hub.state_dir')) return [configurationInvalid('the store')];
  try {
    const integrity = checkIntegrity(configuration.stateDirectory);
    if (integrity.kind === 'absent') return [ok('there is no store yet: the hub makes it when it is started first')];
    if (integrity.kind === 'whole') return [ok('the store is whole (a copy of it was looked at)')];
    return [
      fail(`the store is damaged (${integrity.reason}): start the hub, which mends what it can, or "latchkey restore"`),
    ];
  } catch (error) {
    return [isRoot ? fail(`the store can't be read: ${messageOf(error)}`) : permissionDenied('the store')];
  }
}

/** Whether a hub would start with the configuration as it is now. */
export async function checkConfiguration({
  configuration,
  configurationFailures: faults,
  unreadableSecrets: unread,
  hub,
  isRoot,
}: DoctorContext): Promise<CheckResult[]> {
  const meanwhile = hub.kind === 'running' ? '; the running hub goes on with what it read before' : '';
  const wrong = faults.map(messageOf).map((what) => {
    if (!isRoot && what.includes('EACCES')) return warn(`${what}: run it with sudo`);
    return fail(`${what}${meanwhile}`);
  });
  if (wrong.length > 0) return wrong;
  const { file, portals, appliances } = configuration;
  if (isTestMode(hub))
    return [ok(`in test mode the hub has its own portal and state; all else is as ${file} says, or as by default`)];
  if (portals.length === 0) return [fail(`${file} is missing or names no portal: add a table such as [portals.home]`)];
  const what = `${file}: portals: ${portals.map(({ name }) => name).join(', ')}; declared appliances: ${appliances.length}`;
  const secrets = unread.length === 0 ? [] : [permissionDenied(`the secrets ${unread.join(', ')}`)];
  return [ok(what), ...secrets.map((said) => ({ ...said, name: '.secrets' }))];
}

/** Whether the running service was started with its credentials as they are now. */
export async function checkCredentials({ unit, env }: DoctorContext): Promise<CheckResult[]> {
  if (unit === null || unit.mainPid === 0 || unit.credentials.length === 0) return [];
  const changed = await findChangedCredentials(unit.credentials, env, loadedCredentialsDirectory(unit));
  if (changed === null) return [permissionDenied('whether a credential was changed')];
  if (changed.length > 0) return [warn(restartNeededText(changed))];
  return [ok('the service was started with its credentials as they are now')];
}

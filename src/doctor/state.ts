import type { Stats } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fail, needsRoot, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

/** Files of the state directory that are looked at; there are never so many. */
const MOST_FILES = 200;

/** Whether what the hub keeps belongs to it, and is closed to everybody else. */
export async function checkState({ configuration, isRoot }: Subject): Promise<Said[]> {
  if (configuration === null)
    return [warn('the state directory could not be looked at: see to the configuration first')];
  const { stateDirectory: path } = configuration;
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (typeof found === 'string') {
    if (found === 'ENOENT')
      return [warn(`${path} (hub.state_dir) is not there yet: the hub makes it when it is started first`)];
    return [isRoot ? fail(`${path} (hub.state_dir) can't be looked at (${found})`) : needsRoot(path)];
  }
  if (!found.isDirectory()) return [fail(`${path} (hub.state_dir) is no directory: move it away`)];
  if ((found.mode & 0o077) !== 0) {
    return [fail(`${path} is open to other users (mode ${octal(found)}): sudo chmod 700 ${path}`)];
  }
  const names = await readdir(path).catch(() => null);
  if (names === null) return [needsRoot(`what is in ${path}`)];
  const faults: Said[] = [];
  for (const name of names.slice(0, MOST_FILES)) {
    const file = join(path, name);
    const there = await stat(file).catch(() => null);
    if (there === null || there.isSocket()) continue;
    if (there.uid !== found.uid) {
      faults.push(fail(`${file} belongs to another user than its directory: sudo chown --reference=${path}/. ${file}`));
    } else if ((there.mode & 0o077) !== 0) {
      faults.push(fail(`${file} is open to other users (mode ${octal(there)}): sudo chmod go= ${file}`));
    }
  }
  return faults.length > 0 ? faults : [ok(`${path} and what is in it is closed to other users`)];
}

function octal({ mode }: Stats): string {
  return (mode & 0o777).toString(8).padStart(4, '0');
}

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Where Debian installs the parser. */
export const APPARMOR_PARSER = '/usr/sbin/apparmor_parser';

/** The variables of the profile language that file rules of the app's profile and its abstractions use. */
const VARIABLES: Readonly<Record<string, string>> = {
  PROC: '/proc/',
  sys: '/sys/',
  run: '/{,var/}run/',
  etc_ro: '/{,usr/}etc/',
  etc_rw: '/etc/',
  multiarch: '*-linux-gnu*',
  pid: '[0-9]*',
  pids: '[0-9]*',
  tid: '[0-9]*',
};

/** A rule for files, such as `/data/options.json r,`. */
interface FileRule {
  readonly path: RegExp;
  /** Letters such as `r` and `w`. */
  readonly access: string;
}

/** Reads the file rules of a profile, with those of its abstractions. Rules with other variables are left out. */
export async function readFileRules(profile: string): Promise<FileRule[]> {
  const { stdout } = await run(APPARMOR_PARSER, ['-p', profile]);
  return [...stdout.matchAll(/^\s*(?:owner\s+)?((?:\/|@\{)\S*)\s+([a-zA-Z]+),/gm)].flatMap(
    ([, glob = '', access = '']) => {
      const expanded = glob.replaceAll(/@\{(\w+)\}/g, (whole, name: string) => VARIABLES[name] ?? whole);
      return expanded.includes('@') ? [] : [{ path: globToRegExp(expanded.replaceAll(/\/+/g, '/')), access }];
    },
  );
}

/** As in apparmor.d(5): `*` and `?` match no slash, `**` matches everything. */
function globToRegExp(glob: string): RegExp {
  let depth = 0;
  const pattern = glob.replaceAll(/\*\*|[*?{},.+^$()|]/g, (found) => {
    if (found === '**') return '.*';
    if (found === '*') return '[^/]*';
    if (found === '?') return '[^/]';
    if (found === '{') depth += 1;
    if (found === '{') return '(?:';
    if (found === '}') depth -= 1;
    if (found === '}') return ')';
    return found === ',' && depth > 0 ? '|' : `\\${found}`;
  });
  return new RegExp(`^${pattern}$`);
}

/** Whether one of the rules allows an access: `r` or `w`. */
export function isAllowed(rules: readonly FileRule[], path: string, access: 'r' | 'w'): boolean {
  return rules.some((rule) => rule.access.includes(access) && (rule.path.test(path) || rule.path.test(`${path}/`)));
}

/** A use of a file by a program. */
interface FileAccess {
  readonly path: string;
  readonly access: 'r' | 'w';
}

/** The uses of files in an output of `strace -e trace=%file`. The kernel asks AppArmor only about files that exist. */
export function readFileAccesses(trace: string): FileAccess[] {
  return trace.split('\n').flatMap((line): FileAccess[] => {
    const [, call = ''] = /^(?:\d+ +)?(\w+)\(/.exec(line) ?? [];
    if (call === '' || line.includes(' ENOENT ')) return [];
    const paths = [...line.matchAll(/"(\/[^"]*)"/g)].map(([, path = '']) => path.replace(/(?<=.)\/$/, ''));
    const isWrite = /^(mkdir|unlink|rename|link|symlink|chmod|fchmod|chown|lchown|fchown|truncate)/.test(call);
    const writes = isWrite || (call.startsWith('open') && /O_(WRONLY|RDWR|CREAT)/.test(line));
    // Only the program of execve is a file: its arguments and its environment follow.
    const files = call === 'execve' ? paths.slice(0, 1) : paths;
    // The kernel has resolved /proc/self, and asks about the folder of the process.
    return files.map((path) => ({ path: path.replace(/^\/proc\/self\//, '/proc/1/'), access: writes ? 'w' : 'r' }));
  });
}

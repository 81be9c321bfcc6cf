import { existsSync } from 'node:fs';
import { readFile, realpath } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname } from 'node:path';

/** Whether this process runs in Latchkey's container image, which sets the variable. */
export function isInContainer(env: NodeJS.ProcessEnv = process.env): boolean {
  return env['LATCHKEY_CONTAINER'] === '1';
}

/** What a container of another kind has: systemd-nspawn, LXC, Docker or Podman. */
const CONTAINER_MARKS = ['/run/systemd/container', '/.dockerenv', '/run/.containerenv'];

/** Whether this process runs in a container of any kind. */
export function isInAnyContainer(): boolean {
  return CONTAINER_MARKS.some((mark) => existsSync(mark));
}

/** The host name that engines generate for a container with a network of its own: the start of its id. */
const GENERATED_NAME = /^[0-9a-f]{12}$/;

/**
 * The name of this machine. In a container with a generated host name it is `latchkey`: the CA must not be limited to a
 * name that the next container does not have.
 */
export function machineName(env: NodeJS.ProcessEnv = process.env, name: string = hostname()): string {
  return isInContainer(env) && GENERATED_NAME.test(name) ? 'latchkey' : name;
}

/** A mounted file system (proc_pid_mountinfo(5)). */
export interface Mount {
  readonly mountPoint: string;
  readonly type: string;
  /** What is mounted, such as `/dev/mmcblk0p2`. */
  readonly source: string;
  /** Where an overlay keeps what changes; null for any other type. */
  readonly upperDirectory: string | null;
  /** Whether the mount is read-only although its file system is not, as with the option `ro` of a volume. */
  readonly isReadOnlyView: boolean;
}

const MOUNT_TABLE = '/proc/self/mountinfo';

/**
 * The mount that contains a path, or the first existing directory above it.
 * @returns null if the kernel's table can't be read
 */
export async function findMount(path: string, table: string = MOUNT_TABLE): Promise<Mount | null> {
  const text = await readFile(table, 'utf8').catch(() => null);
  if (text === null) return null;
  // A path that can't be resolved for another reason, such as missing rights, is looked up as it is.
  const real = await realpath(path).catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? null : path));
  if (real === null && path !== '/') return findMount(dirname(path), table);
  let found: Mount | null = null;
  // A later mount at the same place covers an earlier one.
  for (const mount of text.split('\n').flatMap(parseMount)) {
    const isWithin = mount.mountPoint === '/' || `${real ?? path}/`.startsWith(`${mount.mountPoint}/`);
    if (isWithin && mount.mountPoint.length >= (found?.mountPoint.length ?? 0)) found = mount;
  }
  return found;
}

function parseMount(line: string): Mount[] {
  const [fields = '', superblock = ''] = line.split(' - ');
  const [, , , , mountPoint, options = ''] = fields.split(' ');
  const [type = '', source = '', superOptions = ''] = superblock.split(' ');
  if (mountPoint === undefined) return [];
  const isReadOnly = (list: string) => list.split(',').includes('ro');
  // Spaces and some other characters are written in octal.
  const decode = (text: string) =>
    text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  const upper = /(?:^|,)upperdir=([^,]+)/.exec(superOptions)?.[1];
  return [
    {
      mountPoint: decode(mountPoint),
      type,
      source,
      upperDirectory: upper === undefined ? null : decode(upper),
      isReadOnlyView: isReadOnly(options) && !isReadOnly(superOptions),
    },
  ];
}

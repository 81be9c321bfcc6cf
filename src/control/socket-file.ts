import { randomBytes } from 'node:crypto';
import { chmod, chown, link, lstat, mkdir, readFile, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { probeSocket } from './find-control-socket.ts';

/** `sun_path` of unix(7) has 108 bytes, the last of them a NUL. */
const MAX_PATH_BYTES = 107;

/** A listening socket's name in the file system. */
interface SocketFile {
  /** Removes the name, unless another daemon has taken it meanwhile. */
  remove(): Promise<void>;
}

/**
 * Creates a listening socket under a temporary name, sets its mode and group, and then gives it its real name, so that
 * clients never see it with the wrong permissions. It replaces the socket of a daemon that no longer runs.
 * @param listen makes the server listen on the given path
 * @throws Failure `control_socket_taken` if a running daemon listens there, or the path is another kind of file
 * @throws Failure `config_invalid` if no socket can have this path
 */
export async function listenOnSocketFile(
  path: string,
  group: string,
  log: Log,
  listen: (path: string) => Promise<unknown>,
): Promise<SocketFile> {
  const temporary = temporaryPath(path);
  checkPathLength(path, temporary);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await listen(temporary);
  } catch (error) {
    throw new Failure(
      'config_invalid',
      `hub.control_socket: can't listen on ${path}; choose a path in a directory that the daemon may write to`,
      { cause: error },
    );
  }
  try {
    await setSocketAccess(temporary, group, log);
    const own = await lstat(temporary);
    await linkSocket(path, temporary);
    return {
      async remove() {
        const there = await lstat(path).catch(() => null);
        if (there !== null && there.ino === own.ino && there.dev === own.dev) await unlink(path).catch(() => {});
      },
    };
  } finally {
    await unlink(temporary).catch(() => {});
  }
}

/**
 * Gives a listening socket the name `path`, and removes the socket of a dead daemon there. link(2) fails if the name
 * exists, so if several daemons start together, exactly one gets it.
 */
async function linkSocket(path: string, own: string): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there !== null) {
    if (!there.isSocket()) throw socketTaken(path, 'the file there is not a socket: move it away');
    if ((await probeSocket(path)) === 'alive') {
      throw socketTaken(
        path,
        'a running hub listens there: stop it first, or give this hub another hub.control_socket',
      );
    }
    await unlink(path).catch(() => {});
  }
  try {
    await link(own, path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
      throw socketTaken(path, 'another hub started at the same time');
    throw error;
  }
}

function socketTaken(path: string, reason: string): Failure {
  return new Failure('control_socket_taken', `the control socket ${path} can't be created: ${reason}`);
}

function temporaryPath(path: string): string {
  return join(dirname(path), `.${randomBytes(4).toString('hex')}`);
}

/**
 * The control sockets of all hubs on this machine that have the usual file name. The kernel's table has the temporary
 * name, in the same directory, that each socket was bound to. Empty if the kernel has no such table.
 */
export async function listControlSockets(): Promise<string[]> {
  const table = await readFile('/proc/self/net/unix', 'utf8').catch(() => '');
  const directories = [...table.matchAll(/ (\/.*)\/\.[0-9a-f]{8}$/gm)].map(([, directory = '']) => directory);
  return [...new Set(directories)].map((directory) => join(directory, 'control.sock'));
}

function checkPathLength(...paths: string[]): void {
  for (const path of paths) {
    const bytes = Buffer.byteLength(path);
    if (bytes <= MAX_PATH_BYTES) continue;
    throw new Failure(
      'config_invalid',
      `hub.control_socket: the path of a socket must have at most ${MAX_PATH_BYTES} bytes; choose a shorter one (found ${path}, ${bytes} bytes)`,
    );
  }
}

/** Without the right group the mode is 0600: otherwise the process's own group would get access. */
async function setSocketAccess(path: string, group: string, log: Log): Promise<void> {
  const id = await groupId(group);
  const shared = id !== null && (await assignGroup(path, id, group, log));
  await chmod(path, shared ? 0o660 : 0o600);
}

/** A service may already run with the group, and not be permitted to change the owner of files. */
async function assignGroup(path: string, id: number, group: string, log: Log): Promise<boolean> {
  if ((await lstat(path)).gid === id) return true;
  try {
    await chown(path, -1, id);
    return true;
  } catch (error) {
    log.warn('control_socket_group_not_set', { group, error: messageOf(error) });
    return false;
  }
}

/**
 * Reads the id of a group from /etc/group (group(5): `name:password:number:members`).
 * @returns null if there is no such group, or no such file
 */
export async function groupId(name: string, file = '/etc/group'): Promise<number | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const fields = text.split('\n').map((line) => line.split(':'));
  const id = fields.find(([group]) => group === name)?.[2];
  return id !== undefined && /^\d+$/.test(id) ? Number(id) : null;
}

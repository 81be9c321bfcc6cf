import { randomBytes } from 'node:crypto';
import { chmod, chown, link, lstat, mkdir, readFile, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { probeSocket } from './find-control-socket.ts';

/** `sun_path` of unix(7) has 108 bytes, the last of them a NUL. */
const MAX_PATH_BYTES = 107;

/** A listening socket's name in the file system. */
export interface SocketFile {
  /** Takes the name away again, unless another daemon has it by now. */
  remove(): Promise<void>;
}

/**
 * Gives a listening socket its name: it listens under a temporary one first and gets its mode and group, so that nobody
 * ever meets a half-made socket under the real one. The name of a dead daemon's socket is taken over.
 * @param listen makes the server listen on the path it is given
 * @throws Failure `control_socket_taken` where a living daemon listens there, or something else is in the way
 * @throws Failure `config_invalid` for a path that no socket can have
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
      `hub.control_socket: can't listen on ${path}; allowed is a path in a directory that the daemon may write to`,
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
 * Gives a listening socket the name `path`, instead of a dead daemon's socket if there is one. A name is only ever linked where
 * there is none, so that of several daemons that start together one gets it.
 */
async function linkSocket(path: string, own: string): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there !== null) {
    if (!there.isSocket()) throw socketTaken(path, 'it is no socket: move it away');
    if ((await probeSocket(path)) === 'alive') {
      throw socketTaken(
        path,
        'a running hub listens there: stop it first, or give this one another hub.control_socket',
      );
    }
    await unlink(path).catch(() => {});
  }
  try {
    await link(own, path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST')
      throw socketTaken(path, 'another hub was faster');
    throw error;
  }
}

function socketTaken(path: string, why: string): Failure {
  return new Failure('control_socket_taken', `the control socket ${path} can't be had: ${why}`);
}

function temporaryPath(path: string): string {
  return join(dirname(path), `.${randomBytes(4).toString('hex')}`);
}

/**
 * The control sockets of all hubs on this machine, as far as they have the usual name: the kernel knows each by the temporary one
 * that it was bound to beside that. None where the kernel has no such table.
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
      `hub.control_socket: ${path} has ${bytes} bytes; allowed are ${MAX_PATH_BYTES}, because a socket's path can't be longer`,
    );
  }
}

/** A group that the process happens to be in is not the one that the socket is for. */
async function setSocketAccess(path: string, group: string, log: Log): Promise<void> {
  const id = await groupId(group);
  const shared = id !== null && (await assignGroup(path, id, group, log));
  await chmod(path, shared ? 0o660 : 0o600);
}

/** A service may be in the group already, and forbidden to change any file's owner. */
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
 * A group's number by /etc/group, as group(5) has it: `name:password:number:members`.
 * @returns null where there is no such group, or no such file
 */
export async function groupId(name: string, file = '/etc/group'): Promise<number | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const fields = text.split('\n').map((line) => line.split(':'));
  const id = fields.find(([group]) => group === name)?.[2];
  return id !== undefined && /^\d+$/.test(id) ? Number(id) : null;
}

import { chmod, chown, lstat, mkdir, readFile, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Failure, messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';
import { probeSocket } from './find-hub.ts';

/** `sun_path` of unix(7) has 108 bytes, the last of them a NUL. */
const MAX_PATH_BYTES = 107;

/**
 * Makes a server listen on a Unix socket, in place of a dead daemon's if there is one, and gives it its mode and group.
 * @param listen makes the server listen there
 * @throws Failure `control_socket_taken` where a living daemon listens there, or something else is in the way
 * @throws Failure `config_invalid` for a path that no socket can have
 */
export async function placeSocket(
  path: string,
  group: string,
  log: Log,
  listen: () => Promise<unknown>,
): Promise<void> {
  checkLength(path);
  await clear(path);
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await listen();
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE') {
      throw taken(path, 'another hub was faster');
    }
    throw new Failure(
      'config_invalid',
      `hub.control_socket: can't listen on ${path}; allowed is a path in a directory that the daemon may write to`,
      { cause },
    );
  }
  await share(path, group, log);
}

/** Takes a dead daemon's socket away. */
async function clear(path: string): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there === null) return;
  if (!there.isSocket()) throw taken(path, 'it is no socket: move it away');
  if ((await probeSocket(path)) === 'alive') {
    throw taken(path, 'a running hub listens there: stop it first, or give this one another hub.control_socket');
  }
  await unlink(path).catch(() => {});
}

function taken(path: string, why: string): Failure {
  return new Failure('control_socket_taken', `the control socket ${path} can't be had: ${why}`);
}

function checkLength(path: string): void {
  const bytes = Buffer.byteLength(path);
  if (bytes <= MAX_PATH_BYTES) return;
  throw new Failure(
    'config_invalid',
    `hub.control_socket: ${path} has ${bytes} bytes; allowed are ${MAX_PATH_BYTES}, because a socket's path can't be longer`,
  );
}

/** A group that the process happens to be in is not the one that the socket is for. */
async function share(path: string, group: string, log: Log): Promise<void> {
  const id = await groupId(group);
  const shared = id !== null && (await isGivenTo(path, id, group, log));
  await chmod(path, shared ? 0o660 : 0o600);
}

/** A service may be in the group already, and forbidden to change any file's owner. */
async function isGivenTo(path: string, id: number, group: string, log: Log): Promise<boolean> {
  if ((await lstat(path)).gid === id) return true;
  try {
    await chown(path, -1, id);
    return true;
  } catch (error) {
    log.warn('control_socket_group_not_set', { group, problem: messageOf(error) });
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

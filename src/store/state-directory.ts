import { constants } from 'node:fs';
import { access, lstat, mkdir, stat } from 'node:fs/promises';
import { Failure } from '../core/failure.ts';

/**
 * Makes sure that the state directory is there, this user's own, readable, and closed to everybody else. Root is no exception:
 * in a directory of another user it would follow what that user puts there, and leave files that the user can't read. Whether it can be written is for
 * the store to find out: what is in it can be served all the same.
 * @throws Failure `state_dir_unusable`
 */
export async function ensureStateDirectory(path: string): Promise<void> {
  const unusable = (what: string, cause?: unknown) =>
    new Failure('state_dir_unusable', `the state directory ${path} (hub.state_dir) ${what}`, { cause });
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'EACCES') throw unusable('belongs to another user: name another one', cause);
    return null;
  });
  if (found === null) {
    await mkdir(path, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
      throw unusable("can't be made: name another one, or run Latchkey as a user who may", cause);
    });
    return;
  }
  if (!found.isDirectory()) throw unusable('is no directory');
  const owner = await findForeignOwner(path, found.uid);
  if (owner !== null) {
    throw unusable(`belongs to another user (uid ${owner}): run Latchkey as that user, or name another directory`);
  }
  if ((found.mode & 0o077) !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
    throw unusable(`is open to other users (mode ${mode}): close it with "chmod 700 ${path}"`);
  }
  await access(path, constants.R_OK | constants.X_OK).catch((cause: unknown) => {
    throw unusable("can't be read by this user", cause);
  });
}

/** The user whom the directory belongs to, or the link that leads there, where that is somebody else; null where it is not. */
async function findForeignOwner(path: string, uid: number): Promise<number | null> {
  const own = process.geteuid?.() ?? uid;
  if (uid !== own) return uid;
  // Of DynamicUser= the name is a link of root's.
  const link = (await lstat(path)).uid;
  return link === own || link === 0 ? null : link;
}

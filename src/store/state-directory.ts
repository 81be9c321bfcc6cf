import { constants } from 'node:fs';
import { access, lstat, mkdir, stat } from 'node:fs/promises';
import { Failure } from '../core/failure.ts';
import { isInContainer } from '../system/container.ts';

/**
 * Creates the state directory if necessary, and checks that it belongs to this user, is readable, and is closed to all
 * other users. This includes root: in a directory of another user, root would follow links that the user puts there,
 * and leave files that the user can't read. Whether the directory is writable is checked by the store, which can be
 * served in any case.
 * @param inContainer whether the directory is a volume, whose owner and mode are set on the host
 * @throws Failure `state_dir_unusable`
 */
export async function ensureStateDirectory(path: string, inContainer: boolean = isInContainer()): Promise<void> {
  const unusable = (what: string, cause?: unknown) =>
    new Failure('state_dir_unusable', `the state directory ${path} (hub.state_dir) ${what}`, { cause });
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === 'EACCES') throw unusable('belongs to another user: name another one', cause);
    return null;
  });
  if (found === null) {
    await mkdir(path, { recursive: true, mode: 0o700 }).catch((cause: unknown) => {
      throw unusable("can't be created: name another one, or run Latchkey as a user who may create it", cause);
    });
    return;
  }
  if (!found.isDirectory()) throw unusable('is not a directory: name another one');
  const owner = await findForeignOwner(path, found.uid);
  if (owner !== null) {
    throw unusable(
      inContainer
        ? `belongs to uid ${owner}, but the hub runs as uid ${process.geteuid?.()}: run "chown -R ${process.geteuid?.()}:${process.getegid?.()} DIRECTORY" on the host, with the directory of the volume there (rootless Podman: "podman unshare chown …")`
        : `belongs to another user (uid ${owner}): run Latchkey as that user, or name another directory`,
    );
  }
  if ((found.mode & 0o077) !== 0) {
    const mode = (found.mode & 0o777).toString(8).padStart(4, '0');
    throw unusable(
      inContainer
        ? `is accessible to other users (mode ${mode}): run "chmod 700 DIRECTORY" on the host, with the directory of the volume there`
        : `is accessible to other users (mode ${mode}): run "chmod 700 ${path}"`,
    );
  }
  await access(path, constants.R_OK | constants.X_OK).catch((cause: unknown) => {
    throw unusable("can't be read by this user: make it readable, or name another one", cause);
  });
}

/** The owner of the directory, or of the link that leads to it, if that is another user; else null. */
async function findForeignOwner(path: string, uid: number): Promise<number | null> {
  const own = process.geteuid?.() ?? uid;
  if (uid !== own) return uid;
  // With DynamicUser= the path is a link that belongs to root.
  const link = (await lstat(path)).uid;
  return link === own || link === 0 ? null : link;
}

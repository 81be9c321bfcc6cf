import { constants, existsSync } from 'node:fs';
import { access, lstat, mkdir, stat } from 'node:fs/promises';
import { Failure } from '../core/failure.ts';
import { findMount, isInAnyContainer, isInContainer, type Mount } from '../system/container.ts';

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

const MEMORY_FILE_SYSTEMS = ['tmpfs', 'ramfs'];
/** The block device of Linux whose content is in memory. */
const MEMORY_DEVICE = /^\/dev\/zram\d+$/;

/**
 * Why nothing in the state directory outlives a reboot, as the start of a sentence: it is in memory, or on an overlay
 * whose changes are ("Overlay File System" of raspi-config, a live system). Null if it is on a disk, or if the kernel
 * does not say where it is.
 * @param isContainer whether the upper directory of an overlay may be out of sight because it is the host's
 * @param exists whether a path exists
 */
export async function describeVolatileState(
  path: string,
  find: (path: string) => Promise<Mount | null> = findMount,
  isContainer: boolean = isInAnyContainer(),
  exists: (path: string) => boolean = existsSync,
): Promise<string | null> {
  const mount = await find(path);
  if (mount === null) return null;
  const subject = `The state directory ${path} (hub.state_dir)`;
  if (isInMemory(mount)) return `${subject} is in memory (${mount.type})`;
  if (mount.upperDirectory === null) return null;
  const upper = exists(mount.upperDirectory) ? await find(mount.upperDirectory) : null;
  // Older versions of raspi-config leave it in the initramfs, out of sight.
  const isVolatile = upper === null ? !isContainer : isInMemory(upper);
  return isVolatile ? `${subject} is on an overlay file system, which keeps all changes in memory` : null;
}

function isInMemory({ type, source }: Mount): boolean {
  return MEMORY_FILE_SYSTEMS.includes(type) || MEMORY_DEVICE.test(source);
}

/**
 * Checks, in a container, that the state directory is on a volume that outlives the container and can be written. If
 * the kernel does not say where it is, nothing is checked.
 * @param find finds the mount of a path
 * @throws Failure `state_dir_unusable`
 */
export async function requireVolume(
  path: string,
  find: (path: string) => Promise<Mount | null> = findMount,
): Promise<void> {
  const mount = await find(path);
  if (mount === null) return;
  if (mount.mountPoint === '/' || isInMemory(mount)) {
    const where = isInMemory(mount) ? `on a memory file system (${mount.type})` : 'not on a volume';
    throw new Failure(
      'state_dir_unusable',
      `the state directory ${path} (hub.state_dir) is ${where}, so all grants would be lost with this container: add "--volume latchkey:${path}" to the command that creates it`,
    );
  }
  if (mount.isReadOnlyView) {
    throw new Failure(
      'state_dir_unusable',
      `the volume of the state directory ${path} (hub.state_dir) is mounted read-only: remove "ro" from the options of its "--volume"`,
    );
  }
}

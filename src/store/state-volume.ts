import { existsSync } from 'node:fs';
import { Failure } from '../core/failure.ts';
import { findMount, isInAnyContainer, type Mount } from '../system/container.ts';

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

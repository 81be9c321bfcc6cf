import { Failure } from '../core/failure.ts';
import { findMount, type Mount } from '../system/container.ts';

const MEMORY_FILE_SYSTEMS = ['tmpfs', 'ramfs'];

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
  const isInMemory = MEMORY_FILE_SYSTEMS.includes(mount.type);
  if (mount.mountPoint === '/' || isInMemory) {
    const where = isInMemory ? `on a memory file system (${mount.type})` : 'not on a volume';
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

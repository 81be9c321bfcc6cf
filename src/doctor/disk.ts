import { constants } from 'node:fs';
import { access, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname } from 'node:path';
import { fail, needsRoot, ok, type Said, warn } from './finding.ts';
import type { Subject } from './subject.ts';

const MIB = 1 << 20;
/** Free MiB below which a refresh may not be written, and below which it is soon so. */
const TOO_LITTLE = 8;
const LITTLE = 50;
const FEW_FILES = 100;

/** Whether there is room where the hub writes. */
export async function checkDisk({ configuration }: Subject): Promise<Said[]> {
  const state =
    configuration === null
      ? []
      : [{ ...(await place('hub.state_dir', configuration.stateDirectory, fail)), name: '.state' }];
  return [...state, { ...(await place('temporary files', tmpdir(), warn)), name: '.tmp' }];
}

async function place(what: string, path: string, gone: typeof fail): Promise<Said> {
  const named = `${path} (${what})`;
  const found = await statfs(path).catch((error: NodeJS.ErrnoException) => error.code ?? 'unknown');
  if (found === 'ENOENT' && path !== '/') return place(what, dirname(path), gone);
  if (typeof found === 'string')
    return found === 'EACCES' ? needsRoot(named) : fail(`${named} can't be read (${found}): see to the disk`);
  const readOnly = await access(path, constants.W_OK).then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === 'EROFS',
  );
  if (readOnly)
    return gone(
      `${named} is read-only: mount it for writing; where the system did that by itself, the disk may be dying`,
    );
  const free = Math.floor((found.bavail * found.bsize) / MIB);
  if (free < TOO_LITTLE) return gone(`${named} has ${free} MiB left: make room`);
  // Some file systems have no fixed number of files, and say 0 of 0.
  if (found.files > 0 && found.ffree < FEW_FILES)
    return gone(`${named} has room for ${found.ffree} files more: delete some`);
  if (free < LITTLE) return warn(`${named} has ${free} MiB left: make room soon`);
  return ok(`${named} has ${free} MiB left`);
}

import { randomBytes } from 'node:crypto';
import { open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../../core/failure.ts';

/** A file that a command writes. */
export interface OutputFile {
  readonly path: string;
  /** Whether an existing file may be overwritten. */
  readonly replace: boolean;
  /** The flag that permits it. */
  readonly flag: string;
}

/**
 * Rejects a path that already exists, unless it may be overwritten.
 * @throws Failure `request_invalid`
 */
export async function rejectExistingFile(file: OutputFile): Promise<void> {
  if (!file.replace && (await stat(file.path).catch(() => null)) !== null) throw fileExistsFailure(file);
}

/**
 * Writes a file completely or not at all, readable only by its owner.
 * @throws Failure `request_invalid`
 */
export async function writeFileAtomically(file: OutputFile, content: string | Uint8Array): Promise<void> {
  const { path, replace } = file;
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(4).toString('hex')}`);
  try {
    await writeFile(draft, content, { mode: 0o600, flush: true, flag: 'wx' });
    // Not with a hard link: the file system of a USB stick may not support it.
    if (!replace) await (await open(path, 'wx', 0o600)).close();
    await rename(draft, path);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') throw fileExistsFailure(file);
    const next = 'choose a folder with free space in which this user may write';
    throw new Failure('request_invalid', `${path} can't be written: ${next}`, { cause });
  } finally {
    await rm(draft, { force: true });
  }
}

function fileExistsFailure({ path, flag }: OutputFile): Failure {
  return new Failure('request_invalid', `${path} already exists: choose another name, or overwrite it with ${flag}`);
}

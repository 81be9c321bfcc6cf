import { randomBytes } from 'node:crypto';
import { open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../../core/failure.ts';

/** A file that a command is to write. */
export interface OutputFile {
  readonly path: string;
  /** Whether another one may be there. */
  readonly replace: boolean;
  /** The flag that says so. */
  readonly flag: string;
}

/**
 * Refuses a name at which there is something already, unless that may be replaced.
 * @throws Failure `request_invalid`
 */
export async function rejectExistingFile(file: OutputFile): Promise<void> {
  if (!file.replace && (await stat(file.path).catch(() => null)) !== null) throw fileExistsFailure(file);
}

/**
 * Writes a file whole or not at all, closed to everybody else.
 * @throws Failure `request_invalid`
 */
export async function writeFileAtomically(file: OutputFile, content: string | Uint8Array): Promise<void> {
  const { path, replace } = file;
  const draft = join(dirname(path), `.${basename(path)}.${randomBytes(4).toString('hex')}`);
  try {
    await writeFile(draft, content, { mode: 0o600, flush: true, flag: 'wx' });
    // Not a link: a stick's file system may have none.
    if (!replace) await (await open(path, 'wx', 0o600)).close();
    await rename(draft, path);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EEXIST') throw fileExistsFailure(file);
    const next = 'name a place that has room and that this user may write to';
    throw new Failure('request_invalid', `${path} can't be written: ${next}`, { cause });
  } finally {
    await rm(draft, { force: true });
  }
}

function fileExistsFailure({ path, flag }: OutputFile): Failure {
  return new Failure('request_invalid', `${path} is there already: name another file, or replace it with ${flag}`);
}

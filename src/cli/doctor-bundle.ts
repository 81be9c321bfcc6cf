import { randomBytes } from 'node:crypto';
import { link, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../core/failure.ts';

/**
 * Refuses a name at which there is something already.
 * @throws Failure `request_invalid`
 */
export async function refuseExisting(file: string): Promise<void> {
  if ((await stat(file).catch(() => null)) === null) return;
  throw new Failure('request_invalid', `${file} is there already: name another file, or replace it with --yes`);
}

/**
 * Writes a file whole or not at all, closed to everybody else.
 * @param replace whether another one may be there
 * @throws Failure `request_invalid`
 */
export async function writeWhole(file: string, bytes: Uint8Array, replace: boolean): Promise<void> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(4).toString('hex')}`);
  try {
    await writeFile(draft, bytes, { mode: 0o600, flush: true, flag: 'wx' });
    if (replace) await rename(draft, file);
    else await link(draft, file);
  } catch (cause) {
    if (!replace) await refuseExisting(file);
    const next = 'name a file in a directory that this user may write to, on a disk with room';
    throw new Failure('request_invalid', `${file} can't be written: ${next}`, { cause });
  } finally {
    await rm(draft, { force: true });
  }
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Failure } from '../core/failure.ts';

/** Where Debian's administrators put CAs of their own, see update-ca-certificates(8). */
const DIRECTORY = '/usr/local/share/ca-certificates';
const UPDATE = '/usr/sbin/update-ca-certificates';

/**
 * Puts a CA on the list of those that the programs of this machine trust, or removes it.
 * @param name of the file, without its ending
 * @param certificate PEM; null to remove it
 * @param place the folder of the CAs, and the program that makes the list of them
 * @throws Failure `not_allowed`
 */
export async function changeMachineTrust(
  name: string,
  certificate: string | null,
  place: readonly [directory: string, update: string] = [DIRECTORY, UPDATE],
): Promise<void> {
  const [directory, update] = place;
  const path = join(directory, `${name}.crt`);
  if (!existsSync(update)) {
    throw new Failure(
      'not_allowed',
      `${update} is missing: install the package ca-certificates (Debian), and try again`,
    );
  }
  if (certificate === null && !existsSync(path)) {
    throw new Failure('not_allowed', `there is no ${path}: this command has installed no CA here, or it was removed`);
  }
  try {
    if (certificate === null) await rm(path);
    else {
      await mkdir(directory, { recursive: true });
      await writeFile(path, certificate);
      // Whatever umask root has: every program must be able to read it.
      await chmod(path, 0o644);
    }
    await promisify(execFile)(update, ['--fresh'], { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } });
  } catch (cause) {
    const isForbidden = cause instanceof Error && 'code' in cause && ['EACCES', 'EPERM'].includes(String(cause.code));
    const advice = isForbidden ? ': run the command as root (sudo)' : '';
    throw new Failure('not_allowed', `the list of CAs can't be changed${advice}`, {
      cause,
      includesCause: isForbidden,
    });
  }
}

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
 * @throws Failure `not_allowed`
 */
export async function changeMachineTrust(name: string, certificate: string | null): Promise<void> {
  const path = join(DIRECTORY, `${name}.crt`);
  if (!existsSync(UPDATE)) {
    throw new Failure(
      'not_allowed',
      `${UPDATE} is missing: install the package ca-certificates (Debian), and try again`,
    );
  }
  if (certificate === null && !existsSync(path)) {
    throw new Failure('not_allowed', `there is no ${path}: this command has installed no CA here, or it was removed`);
  }
  try {
    if (certificate === null) await rm(path);
    else {
      await mkdir(DIRECTORY, { recursive: true });
      await writeFile(path, certificate);
      // Whatever umask root has: every program must be able to read it.
      await chmod(path, 0o644);
    }
    await promisify(execFile)(UPDATE, ['--fresh'], { env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' } });
  } catch (cause) {
    throw new Failure('not_allowed', `the list of CAs can't be changed: run the command as root (sudo)`, { cause });
  }
}

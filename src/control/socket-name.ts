import { createHash } from 'node:crypto';
import { link, lstat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../core/failure.ts';
import { probeSocket } from './find-hub.ts';

/**
 * Gives a listening socket the name `path`, instead of a dead daemon's socket where there is one. Of several daemons that
 * try at once only one gets it: a name is only ever linked where there is none, and a dead socket only ever removed by
 * who holds the claim, which is a link to a living socket itself and so can be told from a dead one's.
 * @param own another name of the socket, in the same directory
 * @throws Failure `control_socket_taken`
 */
export async function takeName(path: string, own: string): Promise<void> {
  if (await linked(own, path)) return;
  const claim = claimOf(path);
  if (!(await linked(own, claim))) {
    if ((await probeSocket(claim)) === 'alive') throw taken(path, 'another hub is starting there');
    await remove(claim);
    if (!(await linked(own, claim))) throw taken(path, 'another hub is starting there');
  }
  try {
    await removeDead(path);
    if (!(await linked(own, path))) throw taken(path, 'another hub was faster');
  } finally {
    await remove(claim);
  }
}

/** As long as a temporary name, so that it fits into `sun_path` where they do. */
function claimOf(path: string): string {
  return join(dirname(path), `.${createHash('sha256').update(basename(path)).digest('hex').slice(0, 8)}`);
}

/** @returns false where the name is taken */
async function linked(own: string, name: string): Promise<boolean> {
  try {
    await link(own, name);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

async function removeDead(path: string): Promise<void> {
  const there = await lstat(path).catch(() => null);
  if (there === null) return;
  if (!there.isSocket()) throw taken(path, 'it is no socket: move it away');
  if ((await probeSocket(path)) === 'alive') {
    throw taken(path, 'a running hub listens there: stop it first, or give this one another hub.control_socket');
  }
  await remove(path);
}

async function remove(name: string): Promise<void> {
  await unlink(name).catch(() => {});
}

function taken(path: string, why: string): Failure {
  return new Failure('control_socket_taken', `the control socket ${path} can't be had: ${why}`);
}

import { connect } from 'node:net';
import { Failure } from '../core/failure.ts';

/** What is behind a socket's path. `dead`: nobody listens; `absent`: there is no such path; `forbidden`: not for this user. */
type SocketState = 'alive' | 'absent' | 'dead' | 'forbidden';

/**
 * Finds the running hub.
 * @param paths where its control socket may be, in the order they are tried
 * @throws Failure `hub_not_running`, or `not_allowed` where a socket is there and this user may not use it
 */
export async function findControlSocket(paths: readonly string[]): Promise<string> {
  const problems: string[] = [];
  let forbidden: string | null = null;
  for (const path of paths) {
    const probe = await probeSocket(path);
    if (probe === 'alive') return path;
    if (probe === 'forbidden') forbidden ??= path;
    else problems.push(`${path} ${probe === 'absent' ? 'is not there' : 'is dead'}`);
  }
  if (forbidden !== null) {
    throw new Failure(
      'not_allowed',
      `this user may not speak to the hub at ${forbidden}: run the command with sudo, or join the group ("sudo usermod -aG latchkey-admin $USER", then log in again)`,
    );
  }
  throw new Failure(
    'hub_not_running',
    `no hub is running here${problems.length === 0 ? '' : ` (${problems.join(', ')})`}: start it ("sudo systemctl start latchkey" where it is installed, else "latchkey serve"), or name its configuration with --config`,
  );
}

/** Connects to a Unix socket, only to see whether somebody listens. */
export function probeSocket(path: string): Promise<SocketState> {
  const { promise, resolve } = Promise.withResolvers<SocketState>();
  const socket = connect({ path });
  socket.once('connect', () => {
    socket.destroy();
    resolve('alive');
  });
  socket.once('error', (error: NodeJS.ErrnoException) => resolve(socketStateFromError(error)));
  return promise;
}

function socketStateFromError(error: NodeJS.ErrnoException): SocketState {
  switch (error.code) {
    case 'EAGAIN': // a full backlog: somebody listens, and is busy
      return 'alive';
    case 'EACCES':
    case 'EPERM':
      return 'forbidden';
    case 'ENOENT':
    case 'ENOTDIR':
      return 'absent';
    default:
      return 'dead';
  }
}

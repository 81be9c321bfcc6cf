import { connect } from 'node:net';
import { Failure } from '../core/failure.ts';
import { isInCheckout } from '../system/command-invocation.ts';
import { isInContainer } from '../system/container.ts';

/**
 * The state of a socket's path. `dead`: no process listens; `absent`: the path does not exist; `forbidden`: no access
 * for this user.
 */
type SocketState = 'alive' | 'absent' | 'dead' | 'forbidden';

/**
 * Finds the running hub.
 * @param paths where its control socket may be, in the order to try
 * @throws Failure `hub_not_running`, or `not_allowed` if there is a socket that this user may not use
 */
export async function findControlSocket(paths: readonly string[]): Promise<string> {
  const problems: string[] = [];
  let forbidden: string | null = null;
  for (const path of paths) {
    const state = await probeSocket(path);
    if (state === 'alive') return path;
    if (state === 'forbidden') forbidden ??= path;
    else problems.push(`${path} ${state === 'absent' ? 'does not exist' : 'has no listener'}`);
  }
  if (forbidden !== null) {
    throw new Failure(
      'not_allowed',
      `this user has no access to the hub at ${forbidden}: run the command with sudo, or join the group ("sudo usermod -aG latchkey-admin $USER", then log in again)`,
    );
  }
  throw new Failure(
    'hub_not_running',
    `no hub is running here${problems.length === 0 ? '' : ` (${problems.join(', ')})`}: ${howToStart()}, or name its configuration with --config`,
  );
}

function howToStart(): string {
  if (isInContainer()) return 'start its container, and run this command in that one ("podman exec" or "docker exec")';
  if (isInCheckout()) return 'start it ("latchkey serve --test-mode" to try it out, "latchkey serve" to keep its data)';
  return 'start it ("sudo systemctl start latchkey" if it is installed as a service, else "latchkey serve"; if the service is active, "systemctl status latchkey" says what it waits for)';
}

/** Connects to a Unix socket to find out whether a process listens. */
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
    case 'EAGAIN': // the backlog is full: a process listens, but is busy
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

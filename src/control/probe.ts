import { connect } from 'node:net';

/** What is behind a socket's path. `dead`: nobody listens; `absent`: there is no such socket. */
export type Probe =
  | { readonly kind: 'alive' }
  | { readonly kind: 'absent' | 'dead' | 'forbidden'; readonly problem: string };

/** Connects to a Unix socket, only to see whether somebody listens. */
export function probeSocket(path: string): Promise<Probe> {
  const { promise, resolve } = Promise.withResolvers<Probe>();
  const socket = connect({ path });
  socket.once('connect', () => {
    socket.destroy();
    resolve({ kind: 'alive' });
  });
  socket.once('error', (error: NodeJS.ErrnoException) => resolve(judge(error)));
  return promise;
}

function judge(error: NodeJS.ErrnoException): Probe {
  const problem = error.code ?? error.message;
  switch (error.code) {
    case 'EAGAIN': // a full backlog: somebody listens, and is busy
      return { kind: 'alive' };
    case 'EACCES':
    case 'EPERM':
      return { kind: 'forbidden', problem };
    case 'ENOENT':
    case 'ENOTDIR':
      return { kind: 'absent', problem };
    default:
      return { kind: 'dead', problem };
  }
}

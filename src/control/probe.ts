import { connect } from 'node:net';

/** What is behind a socket's path. `dead`: nobody listens; `absent`: there is no such path; `forbidden`: not for this user. */
export type Probe = 'alive' | 'absent' | 'dead' | 'forbidden';

/** Connects to a Unix socket, only to see whether somebody listens. */
export function probeSocket(path: string): Promise<Probe> {
  const { promise, resolve } = Promise.withResolvers<Probe>();
  const socket = connect({ path });
  socket.once('connect', () => {
    socket.destroy();
    resolve('alive');
  });
  socket.once('error', (error: NodeJS.ErrnoException) => resolve(judge(error)));
  return promise;
}

function judge(error: NodeJS.ErrnoException): Probe {
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

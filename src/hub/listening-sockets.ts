import { ListeningSockets } from '../lan/listening-sockets.ts';

/**
 * The sockets that this process listens on, for one hub after another. Closing them is the caller's, and before the last hub
 * is disposed of: who comes then is refused, and not left waiting.
 */
export async function listeningSockets(_env: NodeJS.ProcessEnv, _pid: number): Promise<ListeningSockets> {
  return new ListeningSockets();
}

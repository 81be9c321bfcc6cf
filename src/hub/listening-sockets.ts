import { activatedSockets } from '../lan/activated-sockets.ts';
import { ListeningSockets } from '../lan/listening-sockets.ts';

/**
 * The sockets that this process listens on, for one hub after another. Closing them is the caller's, and before the last hub
 * is disposed of: who comes then is refused, and not left waiting.
 * @param env loses what tells of sockets that systemd has opened
 * @throws Failure `config_invalid` where those are none that a hub can have
 */
export async function listeningSockets(env: NodeJS.ProcessEnv, pid: number): Promise<ListeningSockets> {
  return new ListeningSockets(await activatedSockets(env, pid));
}

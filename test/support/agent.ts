import { Agent } from 'undici';
import { scaleDeadline } from './deadlines.ts';

/** An agent of a client in tests: a busy machine gets more time for a handshake than the ten seconds of undici. */
export function createAgent({ connect, ...options }: Agent.Options = {}): Agent {
  const timeout = scaleDeadline(2000);
  return new Agent({ ...options, connect: typeof connect === 'function' ? connect : { timeout, ...connect } });
}

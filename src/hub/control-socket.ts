import { type ControlServer, type ControlServerOptions, startControlServer } from '../control/server.ts';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';

/** How long until the next attempt to create the socket, in ms. */
const RETRY_INTERVAL = 10_000;
/** Errors of the disk, and not of the configuration. */
const TRANSIENT_ERRORS = /\b(EROFS|ENOSPC|EDQUOT|EIO)\b/;

/**
 * Serves the control socket as soon as its directory can be written: a full or read-only disk must not keep the hub
 * from issuing tokens.
 * @throws Failure as {@link startControlServer}, if the error is not transient
 */
export async function openControlSocket(options: ControlServerOptions, timers: Timers): Promise<AsyncDisposable> {
  const { path, log } = options;
  const stopped = new AbortController();
  const logged = new Set<string>();

  /** Logs each error only once, because a disk may be full for days. */
  function logFailure(error: unknown): null {
    const message = messageOf(error);
    if (!logged.has(message)) log.error('control_socket_failed', { error: message, retry_in: RETRY_INTERVAL / 1000 });
    logged.add(message);
    return null;
  }

  async function retryUntilServed(): Promise<ControlServer | null> {
    for (;;) {
      await timers.sleep(RETRY_INTERVAL, stopped.signal);
      if (stopped.signal.aborted) return null;
      const server = await startControlServer(options).catch(logFailure);
      if (server === null) continue;
      log.info('control_socket_created', { control_socket: path });
      return server;
    }
  }

  const first = await startControlServer(options).catch((error: unknown) => {
    if (!TRANSIENT_ERRORS.test(messageOf(error))) throw error;
    return logFailure(error);
  });
  const serving = first === null ? retryUntilServed() : Promise.resolve(first);
  return {
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await (await serving)?.[Symbol.asyncDispose]();
    },
  };
}

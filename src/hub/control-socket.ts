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
  const stopped = new AbortController();
  const logged = new Set<string>();
  const first = await tryServe(options, logged);
  const later = first === null ? retryUntilServed(options, timers, stopped.signal, logged) : Promise.resolve(first);
  return {
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await (await later)?.[Symbol.asyncDispose]();
    },
  };
}

async function retryUntilServed(
  options: ControlServerOptions,
  timers: Timers,
  signal: AbortSignal,
  logged: Set<string>,
): Promise<ControlServer | null> {
  for (;;) {
    await timers.sleep(RETRY_INTERVAL, signal);
    if (signal.aborted) return null;
    const server = await tryServe(options, logged).catch((error: unknown) => {
      logOnce(options, logged, error);
      return null;
    });
    if (server === null) continue;
    options.log.info('control_socket_created', { control_socket: options.path });
    return server;
  }
}

/** @param logged the errors that were logged already @returns null if the disk prevents it for now */
async function tryServe(options: ControlServerOptions, logged: Set<string>): Promise<ControlServer | null> {
  try {
    return await startControlServer(options);
  } catch (error) {
    if (!TRANSIENT_ERRORS.test(messageOf(error))) throw error;
    logOnce(options, logged, error);
    return null;
  }
}

/** Logs each error only once, because a disk may be full for days. */
function logOnce({ log }: ControlServerOptions, logged: Set<string>, error: unknown): void {
  const message = messageOf(error);
  if (logged.has(message)) return;
  logged.add(message);
  log.error('control_socket_failed', { error: message, retry_in: RETRY_INTERVAL / 1000 });
}

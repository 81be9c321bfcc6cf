import { type ControlServer, type ControlServerOptions, startControlServer } from '../control/server.ts';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';

/** How long until it is tried again to make the socket, in ms. */
const RETRY_INTERVAL = 10_000;
/** The disk's fault, and not the configuration's. */
const TRANSIENT_ERRORS = /\b(EROFS|ENOSPC|EDQUOT|EIO)\b/;

/**
 * Serves the control socket, as soon as its directory can be written: a disk that is full or read-only must not keep a hub
 * from handing out tokens.
 * @throws Failure as {@link startControlServer}, for whatever does not pass by itself
 */
export async function openControlSocket(options: ControlServerOptions, timers: Timers): Promise<AsyncDisposable> {
  const stopped = new AbortController();
  const told = new Set<string>();
  const first = await tryServe(options, told);
  const later = first === null ? retryUntilServed(options, timers, stopped.signal, told) : Promise.resolve(first);
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
  told: Set<string>,
): Promise<ControlServer | null> {
  for (;;) {
    await timers.sleep(RETRY_INTERVAL, signal);
    if (signal.aborted) return null;
    const server = await tryServe(options, told).catch((error: unknown) => {
      logOnce(options, told, error);
      return null;
    });
    if (server === null) continue;
    options.log.info('control_socket_created', { control_socket: options.path });
    return server;
  }
}

/** Null where the disk does not let it be made for now. @param told the errors of which the log knows */
async function tryServe(options: ControlServerOptions, told: Set<string>): Promise<ControlServer | null> {
  try {
    return await startControlServer(options);
  } catch (error) {
    if (!TRANSIENT_ERRORS.test(messageOf(error))) throw error;
    logOnce(options, told, error);
    return null;
  }
}

/** Each error once: a disk may be full for days. */
function logOnce({ log }: ControlServerOptions, told: Set<string>, error: unknown): void {
  const message = messageOf(error);
  if (told.has(message)) return;
  told.add(message);
  log.error('control_socket_failed', { error: message, retry_in: RETRY_INTERVAL / 1000 });
}

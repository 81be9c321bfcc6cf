import { type ControlServer, type ControlServerOptions, serveControl } from '../control/server.ts';
import type { Timers } from '../core/clock.ts';
import { messageOf } from '../core/failure.ts';

/** How long until it is tried again to make the socket, in ms. */
const RETRY = 10_000;
/** The disk's fault, and not the configuration's. */
const PASSING = /\b(EROFS|ENOSPC|EDQUOT|EIO)\b/;

/**
 * Serves the control socket, as soon as its directory can be written: a disk that is full or read-only must not keep a hub
 * from handing out tokens.
 * @throws Failure as {@link serveControl}, for whatever does not pass by itself
 */
export async function openControlSocket(options: ControlServerOptions, timers: Timers): Promise<AsyncDisposable> {
  const stopped = new AbortController();
  const first = await attempt(options);
  const later = first === null ? tryAgain(options, timers, stopped.signal) : Promise.resolve(first);
  return {
    async [Symbol.asyncDispose]() {
      stopped.abort();
      await (await later)?.[Symbol.asyncDispose]();
    },
  };
}

async function tryAgain(
  options: ControlServerOptions,
  timers: Timers,
  signal: AbortSignal,
): Promise<ControlServer | null> {
  for (;;) {
    await timers.sleep(RETRY, signal);
    if (signal.aborted) return null;
    const server = await attempt(options).catch((error: unknown) => {
      options.log.warn('control socket could not be made', { error: messageOf(error), retry_in: RETRY / 1000 });
      return null;
    });
    if (server === null) continue;
    options.log.info('control socket made', { control_socket: options.path });
    return server;
  }
}

/** Null where the disk does not let it be made for now. */
async function attempt(options: ControlServerOptions): Promise<ControlServer | null> {
  try {
    return await serveControl(options);
  } catch (error) {
    if (!PASSING.test(messageOf(error))) throw error;
    const retry_in = RETRY / 1000;
    options.log.error('control socket could not be made', { error: messageOf(error), retry_in });
    return null;
  }
}

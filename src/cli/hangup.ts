import { isatty } from 'node:tty';

/** The standard streams' descriptors. */
const STREAMS = [0, 1, 2];

/**
 * Calls `reload` at every SIGHUP, by which one tells a daemon that its configuration was changed.
 * @returns resolves when SIGHUP says something else: that the terminal is gone that the program was started on
 */
export function onHangup(reload: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const terminals = STREAMS.filter((stream) => isatty(stream));
  process.on('SIGHUP', () => {
    if (terminals.every((stream) => isatty(stream))) reload();
    else resolve();
  });
  return promise;
}

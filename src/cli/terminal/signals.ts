import { isatty } from 'node:tty';

/** A second signal means: at once. It is the shell's status for a program that was ended by SIGINT. */
const EXIT_INTERRUPTED = 130;

/**
 * Waits for SIGINT or SIGTERM. The first asks for an orderly end; a second ends the process without waiting.
 * @param others resolves when there is another reason to end
 * @returns the signal, or null for another reason
 */
export async function waitForTerminationSignal(
  others: Promise<void> = new Promise(() => undefined),
): Promise<NodeJS.Signals | null> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let asked = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked) process.exit(EXIT_INTERRUPTED);
    asked = true;
    resolve(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return Promise.race([promise, others.then(() => null)]);
}

/** The standard streams' descriptors. */
const STANDARD_STREAMS = [0, 1, 2];

/**
 * Calls `reload` at every SIGHUP, by which one tells a daemon that its configuration was changed.
 * @returns resolves when SIGHUP says something else: that the terminal is gone that the program was started on
 */
export function onHangup(reload: () => void): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const terminals = STANDARD_STREAMS.filter((stream) => isatty(stream));
  process.on('SIGHUP', () => {
    if (terminals.every((stream) => isatty(stream))) reload();
    else resolve();
  });
  return promise;
}

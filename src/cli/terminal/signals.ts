import { isatty } from 'node:tty';

/** The exit status after a second signal: the one that shells report for a program that SIGINT ended. */
const EXIT_INTERRUPTED = 130;

/**
 * Waits for SIGINT or SIGTERM. The first signal requests an orderly shutdown; a second one ends the process at once.
 * @param others resolves if there is another reason to end
 * @returns the signal, or null for another reason
 */
export async function waitForTerminationSignal(
  others: Promise<void> = new Promise(() => undefined),
): Promise<NodeJS.Signals | null> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (isStopping) process.exit(EXIT_INTERRUPTED);
    isStopping = true;
    resolve(signal);
  };
  process.on('SIGINT', onSignal);
  process.on('SIGTERM', onSignal);
  return Promise.race([promise, others.then(() => null)]);
}

/** The standard streams' descriptors. */
const STANDARD_STREAMS = [0, 1, 2];

/**
 * Calls `reload` for every SIGHUP, the signal to reload the configuration.
 * @returns a promise that resolves when a SIGHUP means something else: the terminal of the program has been closed
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

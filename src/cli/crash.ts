import { messageOf } from '../core/failure.ts';
import type { Log } from '../core/log.ts';

/**
 * What nobody has caught, be it thrown or a rejected promise, ends the process with status 1 and the event `crashed`:
 * the hub's state is on disk at every moment, and a fresh start is safer than going on with half of a step done.
 */
export function endOnCrash(log: Log): void {
  process.on('uncaughtException', (error, origin) => {
    try {
      log.error('crashed', { origin, error: messageOf(error), at: framesOf(error) });
    } finally {
      process.exit(1);
    }
  });
}

/** Where it came from: the stack without the message, which is told already. */
function framesOf(error: unknown): string {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line));
  return frames
    .slice(0, 8)
    .map((line) => line.trim())
    .join('; ');
}

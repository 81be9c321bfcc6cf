import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import { printable, printStderr, reportFailure } from './output.ts';

/** What a command did not see coming ends it with status 1 and one line. */
export function installCrashHandler(): void {
  process.on('uncaughtException', onUncaughtException);
}

/**
 * In the daemon, what nobody has caught, be it thrown or a rejected promise, ends the process with status 1 and the event
 * `crashed`: the hub's state is on disk at every moment, and a fresh start is safer than going on with half of a step done.
 */
export function installDaemonCrashHandler(log: Log): void {
  process.off('uncaughtException', onUncaughtException);
  process.on('uncaughtException', (error, origin) => {
    try {
      const frames = stackFrames(error);
      const at = (isDebug() ? frames : frames.slice(0, 1)).join('; ');
      log.error('crashed', { origin, error: messageOf(error), at });
    } finally {
      process.exit(1);
    }
  });
}

/** Says what nobody has foreseen, and how more is to be learned of it. */
export function reportInternalError(error: unknown): void {
  const next = isDebug()
    ? 'report it with the lines below'
    : 'run it again with LATCHKEY_DEBUG=1, and report what it says';
  reportFailure(`something unexpected happened (${messageOf(error)}): ${next}`);
  printStackTraces(error);
}

function onUncaughtException(error: unknown): void {
  try {
    reportInternalError(error);
  } finally {
    process.exit(1);
  }
}

/** Whether whoever runs this has asked for stack traces. */
function isDebug(): boolean {
  return process.env['LATCHKEY_DEBUG'] === '1';
}

/** The stacks of an error and of its causes on standard error, where they were asked for. */
export function printStackTraces(error: unknown): void {
  if (!isDebug()) return;
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    const code = 'code' in current ? ` [${String(current.code)}]` : '';
    printStderr(`${depth === 0 ? '' : 'caused by '}${current.name}${code}: ${printable(current.message)}`);
    for (const frame of stackFrames(current)) printStderr(`    ${printable(frame)}`);
    if (current instanceof AggregateError) for (const one of current.errors) printStackTraces(one);
  }
}

/** Where an error came from: the stack without the message, innermost first; eight places at most. */
function stackFrames(error: unknown): string[] {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 8)
    .map((line) => line.trim());
}

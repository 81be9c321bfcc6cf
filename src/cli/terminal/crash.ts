import { messageOf } from '../../core/failure.ts';
import type { Log } from '../../core/log.ts';
import { printable, printStderr, reportFailure } from './output.ts';

/** Ends a command with status 1 and one line after an unexpected error. */
export function installCrashHandler(): void {
  process.on('uncaughtException', onUncaughtException);
}

/**
 * In the daemon an uncaught exception or rejected promise ends the process with status 1 and the log event `crashed`.
 * The hub's state is always on disk, so a restart is safer than continuing after a step that was only half done.
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

/** Reports an unexpected error, and how to get more details. */
export function reportInternalError(error: unknown): void {
  const next = isDebug()
    ? 'report it to support, with the lines below'
    : 'run the command again with LATCHKEY_DEBUG=1, and report its output to support';
  reportFailure(`internal error (${messageOf(error)}): ${next}`);
  printStackTraces(error);
}

function onUncaughtException(error: unknown): void {
  try {
    reportInternalError(error);
  } finally {
    process.exit(1);
  }
}

/** Whether the user has asked for stack traces. */
function isDebug(): boolean {
  return process.env['LATCHKEY_DEBUG'] === '1';
}

/** Prints the stack traces of an error and of its causes to standard error, if the user has asked for them. */
export function printStackTraces(error: unknown): void {
  if (!isDebug()) return;
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    const code = 'code' in current ? ` [${String(current.code)}]` : '';
    printStderr(`${depth === 0 ? '' : 'caused by '}${current.name}${code}: ${printable(current.message)}`);
    for (const frame of stackFrames(current)) printStderr(`    ${printable(frame)}`);
    if (current instanceof AggregateError) for (const one of current.errors) printStackTraces(one);
  }
}

/** The stack trace of an error without its message, innermost first, at most eight frames. */
function stackFrames(error: unknown): string[] {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 8)
    .map((line) => line.trim());
}

import { systemTimers } from '../../system/clock.ts';
import { rewriteCommands } from '../../system/command-invocation.ts';

/** The program that runs, for the beginning of its errors. */
export const program = { name: 'latchkey' };

/** Prints a result for people to standard output. */
export function print(text: string): void {
  process.stdout.write(`${rewriteCommands(text)}\n`);
}

/** Prints a result for programs to standard output: one JSON value per line. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Prints a line that is not part of the result to standard error. */
export function printStderr(text: string): void {
  process.stderr.write(`${rewriteCommands(text)}\n`);
}

/** Milliseconds after which a person wants to know why nothing happens. */
const SLOW = 3000;

/**
 * Says on standard error what a command waits for, if that takes longer than a few seconds.
 * @param what the end of "Waiting for "
 */
export async function reportIfSlow<Result>(what: string, work: Promise<Result>): Promise<Result> {
  const stop = systemTimers.after(SLOW, () => printStderr(`Waiting for ${what}`));
  return work.finally(stop);
}

/** What commands wait for that make the hub send a token request: its longest timeout is two minutes. */
export const PORTAL_ANSWER = "the portal's answer, two minutes at most …";

/**
 * Prints in one line what failed and what to do next, and sets the exit status.
 * @param message from a failure or the hub; line breaks and control characters are replaced
 * @param prefix the beginning of the line, for programs that read it
 */
export function reportFailure(message: string, status = 1, prefix = ''): void {
  printStderr(`${prefix}${program.name}: ${printable(message)}`);
  process.exitCode = status;
}

/** Makes text from outside safe for a terminal: it cannot move the cursor or change colours. */
export function printable(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[\p{Cc}\p{Cf}]/gu, '\u{fffd}');
}

/**
 * Handles errors of the standard streams. If a reader closes the pipe (`| head -1`), the program ends without an error.
 * A result that can't be written for another reason, such as a full disk, is a failure.
 */
export function handleOutputErrors(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') reportFailure(`the result can't be written to standard output (${error.message})`);
    process.exit();
  });
  process.stderr.on('error', () => {}); // there is no other place to report it
}

/** Whether output can be redrawn in place: the stream is a terminal, and not a dumb one. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}

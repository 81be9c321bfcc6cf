import { rewriteCommands } from '../../system/command-invocation.ts';

/** A result for people: a line, or several, to standard output. */
export function print(text: string): void {
  process.stdout.write(`${rewriteCommands(text)}\n`);
}

/** A result for programs: one JSON value a line. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Whatever is not the result: a line to standard error. */
export function printStderr(text: string): void {
  process.stderr.write(`${rewriteCommands(text)}\n`);
}

/**
 * Says in one line what failed and what to do next, and sets the exit status.
 * @param message from a failure or the hub; line breaks and control characters in it are taken out
 * @param prefix what the line begins with, for who reads it by programs
 */
export function reportFailure(message: string, status = 1, prefix = ''): void {
  printStderr(`${prefix}latchkey: ${printable(message)}`);
  process.exitCode = status;
}

/** What came from elsewhere, fit for a terminal: nothing in it can move the cursor or change colours. */
export function printable(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll(/[\p{Cc}\p{Cf}]/gu, '\u{fffd}');
}

/**
 * Lets a reader that has seen enough (`| head -1`) close the pipe: then there is nothing more to do, and no error. A
 * result that can't be written for another reason (a full disk) is a failure.
 */
export function handleOutputErrors(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') reportFailure(`the result can't be written to standard output: ${error.message}`);
    process.exit();
  });
  process.stderr.on('error', () => {}); // nobody left to tell
}

/** Whether what stands there can be written over: it is a terminal, and not one that can only go on. */
export function canRedraw(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}

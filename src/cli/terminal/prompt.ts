import { dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { Failure } from '../../core/failure.ts';
import { reportFailure } from './output.ts';

/** Whether there is a terminal, and so a person to ask. */
export function isInteractive(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks a person back, on a terminal; a script is taken at its word. Anything but yes is no. */
export async function confirm(question: string): Promise<boolean> {
  if (!isInteractive()) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([terminal.question(`${question} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

/**
 * Whether a person has agreed to what a warning says. A script must have said so before, and a failure tells that nothing was
 * changed.
 */
export async function confirmWarning(warning: string): Promise<boolean> {
  const asks = isInteractive();
  if (asks && (await confirm(`${warning}\nGo on?`))) return true;
  reportFailure(asks ? 'nothing was changed' : `${warning} Say so with --yes; nothing was changed`);
  return false;
}

/**
 * The passphrase of a backup: from a file that nobody else can read, or asked on the terminal without an echo.
 * @param file as named by `--passphrase-file`
 * @param again whether it is new, and is to be typed twice
 * @throws Failure `request_invalid` where there is neither a file nor a terminal, or the two are not the same
 */
export async function getPassphrase(file: string | undefined, again: boolean): Promise<string> {
  if (file !== undefined) return readPassphraseFile(file);
  if (!isInteractive()) {
    throw new Failure('request_invalid', 'there is no terminal to ask for the passphrase on: name a --passphrase-file');
  }
  const [passphrase = '', repeated] = await promptHidden(['Passphrase: ', ...(again ? ['The same again: '] : [])]);
  if (again && repeated !== passphrase) {
    throw new Failure('request_invalid', 'the two passphrases are not the same: try again');
  }
  return passphrase;
}

async function readPassphraseFile(file: string): Promise<string> {
  const { readSecret } = await import('../../system/secret-file.ts');
  const path = resolve(file);
  const secret = await readSecret(path, dirname(path), undefined).catch((error: Error) => {
    throw new Failure(
      'request_invalid',
      `the passphrase file can't be taken: name one that is there and that this user may read (${error.message})`,
    );
  });
  return secret.reveal();
}

/** What is typed is not shown, from before the first question to after the last: readline echoes into nothing. */
async function promptHidden(questions: readonly string[]): Promise<string[]> {
  const nothing = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nothing, terminal: true, historySize: 0 });
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => undefined);
  terminal.once('SIGINT', () => gone.reject(new Failure('request_invalid', 'interrupted: nothing was done')));
  terminal.once('close', () =>
    gone.reject(
      new Failure('request_invalid', 'no passphrase was typed, and nothing was done: run it again and type one'),
    ),
  );
  const answers: string[] = [];
  try {
    for (const question of questions) {
      process.stderr.write(question);
      answers.push(await Promise.race([terminal.question(''), gone.promise]));
      process.stderr.write('\n');
    }
    return answers;
  } finally {
    terminal.close();
  }
}

import { dirname, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { PASSPHRASE_RULE } from '../../core/backup-contents.ts';
import { Failure } from '../../core/failure.ts';
import { reportFailure } from './output.ts';

/** Whether there is a terminal to ask a person on. */
export function isInteractive(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks for confirmation on a terminal; without one the result is true. Every answer except yes is no. */
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
 * Asks a person to confirm a warning. Without a terminal, or without consent, it reports that nothing was changed and
 * returns false: a script must pass `--yes`.
 */
export async function confirmWarning(warning: string): Promise<boolean> {
  const interactive = isInteractive();
  if (interactive && (await confirm(`${warning}\nContinue?`))) return true;
  reportFailure(
    interactive ? 'nothing was changed' : `${warning} Nothing was changed; to do it, run the command again with --yes`,
  );
  return false;
}

/**
 * Gets the passphrase of a backup: from a file that other users can't read, or from the terminal without an echo.
 * @param file the value of `--passphrase-file`
 * @param isNew whether it is a new passphrase, which must be typed twice
 * @throws Failure `request_invalid` if there is neither a file nor a terminal, or the two inputs differ
 */
export async function getPassphrase(file: string | undefined, isNew: boolean): Promise<string> {
  if (file !== undefined) return readPassphraseFile(file);
  if (!isInteractive()) {
    throw new Failure(
      'request_invalid',
      'there is no terminal to type the passphrase: put it in a file, and name it with --passphrase-file',
    );
  }
  const [passphrase = '', repeated] = await promptHidden(
    isNew ? [`New passphrase (${PASSPHRASE_RULE}): `, 'Repeat the passphrase: '] : ['Passphrase: '],
  );
  if (isNew && repeated !== passphrase) {
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
      `the passphrase file can't be used (${error.message}): check its name, and whether this user may read it`,
    );
  });
  return secret.reveal();
}

/** Asks questions without showing the input: readline echoes into a stream that discards it. */
export async function promptHidden(questions: readonly string[]): Promise<string[]> {
  const discard = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: discard, terminal: true, historySize: 0 });
  const ended = Promise.withResolvers<never>();
  ended.promise.catch(() => undefined);
  terminal.once('SIGINT', () => ended.reject(new Failure('request_invalid', 'interrupted: nothing was done')));
  terminal.once('close', () =>
    ended.reject(new Failure('request_invalid', 'nothing was typed, and nothing was done: run it again and type it')),
  );
  const answers: string[] = [];
  try {
    for (const question of questions) {
      process.stderr.write(question);
      answers.push(await Promise.race([terminal.question(''), ended.promise]));
      process.stderr.write('\n');
    }
    return answers;
  } finally {
    terminal.close();
  }
}

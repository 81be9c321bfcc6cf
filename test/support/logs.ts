import { appendFileSync, mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

let folder: string | undefined;
let files = 0;

/** The folder for the output of everything that tests start. It is searched for secrets after all tests. */
export function logFolder(): string {
  folder ??= process.env['LATCHKEY_TEST_LOGS'] ?? join(mkdtempSync(join(tmpdir(), 'latchkey-test-')), 'logs');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** A path for the output of one process, new with every call. `name` says which program writes there. */
export function logFile(name: string): string {
  files += 1;
  return join(logFolder(), `${name.replaceAll(/[^\w.-]+/g, '-')}.${process.pid}.${files}.log`);
}

/** Shorter secrets would occur in logs by chance. */
const MIN_SECRET_LENGTH = 6;

/**
 * Registers values that no log may contain: tokens, codes, client secrets, setup codes, private keys.
 * @throws Error for a value that is too short to search for, and for a URL: all URLs begin alike
 */
export function rememberSecrets(values: Iterable<string>): void {
  const lines: string[] = [];
  for (const value of values) {
    if (value.includes('://')) throw new Error('pass only the secret part of an address');
    if (value.length < MIN_SECRET_LENGTH)
      throw new Error(`a secret of ${value.length} characters is too short to search for`);
    lines.push(`${JSON.stringify(value)}\n`);
  }
  const file = secretsFile();
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // One write, so that the lines of several test workers don't mix.
  appendFileSync(file, lines.join(''), { mode: 0o600 });
}

/** The file with the registered secrets, one JSON string per line: beside the logs, not among them. */
export function secretsFile(): string {
  return join(dirname(logFolder()), 'secrets', 'secrets.txt');
}

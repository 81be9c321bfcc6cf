import { randomBytes } from 'node:crypto';
import { existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { logFile, logFolder, secretsFile } from '../support/logs.ts';
import { secretSearch } from './secret-search.ts';

test('a secret planted in a log is found there', () => {
  const secret = randomBytes(24).toString('base64url');
  const file = logFile('planted');
  writeFileSync(file, `started\nrefreshed with ${secret}\n`);
  try {
    expect(leaks([secret])).toEqual([expect.stringMatching(/^planted\.[\d.]+log:2: a secret, as it is/)]);
  } finally {
    rmSync(file);
  }
});

test('no log of what the tests started holds a secret', (ctx) => {
  const logs = logFiles();
  const secrets = remembered();
  if (process.env['LATCHKEY_TEST_FILTERED'] !== undefined && (logs.length === 0 || secrets.length === 0)) {
    ctx.skip('the tests that were chosen wrote no log or had no secret');
  }
  expect(logs.length, 'log files').toBeGreaterThan(0);
  expect(secrets.length, 'remembered secrets').toBeGreaterThan(0);
  expect(leaks(secrets)).toEqual([]);
});

/** Every leak as `file:line: kind`, never with the secret itself. */
function leaks(secrets: readonly string[]): string[] {
  const search = secretSearch(secrets);
  return logFiles().flatMap((file) =>
    search(readFileSync(join(logFolder(), file))).map(({ line, kind }) => `${file}:${line}: a secret, ${kind}`),
  );
}

function logFiles(): string[] {
  return globSync('**', { cwd: logFolder(), withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(logFolder().length + 1));
}

function remembered(): string[] {
  if (!existsSync(secretsFile())) return [];
  return readFileSync(secretsFile(), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => String(JSON.parse(line)));
}

import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { logFile, logFolder, secretsFile } from '../support/logs.ts';
import { findLeaks, listFiles, readRememberedSecrets } from './secret-search.ts';

test('the search finds a secret that was planted in a log', () => {
  const secret = randomBytes(24).toString('base64url');
  const file = logFile('planted');
  writeFileSync(file, `started\nrefreshed with ${secret}\n`);
  try {
    expect(findLeaks(logFolder(), [secret])).toEqual([
      expect.stringMatching(/^planted\.[\d.]+log:2: a secret, as it is/),
    ]);
  } finally {
    rmSync(file);
  }
});

test('the logs of all processes that the tests started contain no secret', (ctx) => {
  const logs = listFiles(logFolder());
  const secrets = readRememberedSecrets(secretsFile());
  if (process.env['LATCHKEY_TEST_FILTERED'] !== undefined && (logs.length === 0 || secrets.length === 0)) {
    ctx.skip('the tests that were chosen wrote no log or had no secret');
  }
  expect(logs.length, 'log files').toBeGreaterThan(0);
  expect(secrets.length, 'remembered secrets').toBeGreaterThan(0);
  expect(findLeaks(logFolder(), secrets)).toEqual([]);
});

// The manual page in the programs that show it.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { runLatchkey } from '../../cli/command.ts';

const run = promisify(execFile);
const MAN = '/usr/bin/man';
const MANDOC = '/usr/bin/mandoc';
const file = join(mkdtempSync(join(tmpdir(), 'lk-man-')), 'latchkey.1');

beforeAll(async () => writeFileSync(file, (await runLatchkey(['man'])).stdout));

test.skipIf(!existsSync(MAN))('man shows the manual page up to its last section, without a warning', async () => {
  const env = { ...process.env, LC_ALL: 'C.UTF-8' };
  const warnings = await run(MAN, ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', file], { env });
  expect(warnings.stderr).toBe('');
  const { stdout } = await run(MAN, ['-l', file], { env: { ...env, MANWIDTH: '400' } });
  expect(stdout).toMatch(/^ {3}latchkey status \[options\]$/m);
  expect(stdout).toMatch(/^SEE ALSO$/m);
});

test.skipIf(!existsSync(MANDOC))('the manual page causes no warnings in mandoc', async () => {
  expect((await run(MANDOC, ['-T', 'lint', file])).stdout).toBe('');
});

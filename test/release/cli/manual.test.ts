// The manual pages in the programs that show them.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { runLatchkey } from '../../cli/command.ts';
import { root } from '../../project/checkout.ts';

const run = promisify(execFile);
const MAN = '/usr/bin/man';
const MANDOC = '/usr/bin/mandoc';
const folder = mkdtempSync(join(tmpdir(), 'lk-man-'));

beforeAll(async () => {
  writeFileSync(join(folder, 'latchkey.1'), (await runLatchkey(['man'])).stdout);
  const configuration = await run(process.execPath, [join(root, 'scripts/deb.d/configuration-manual.ts')]);
  writeFileSync(join(folder, 'latchkey.toml.5'), configuration.stdout);
});

describe.each([
  ['latchkey.1', /^ {3}latchkey status \[options\]$/m],
  ['latchkey.toml.5', /^ {7}portals\.NAME\.issuer$/m],
])('the manual page %s', (name, entry) => {
  const file = join(folder, name);

  test.skipIf(!existsSync(MAN))('man shows the page up to its last section, without a warning', async () => {
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const warnings = await run(MAN, ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', file], { env });
    expect(warnings.stderr).toBe('');
    const { stdout } = await run(MAN, ['-l', file], { env: { ...env, MANWIDTH: '400' } });
    expect(stdout).toMatch(entry);
    expect(stdout).toMatch(/^SEE ALSO$/m);
  });

  test.skipIf(!existsSync(MANDOC))('the page causes no warnings in mandoc', async () => {
    expect((await run(MANDOC, ['-T', 'lint', file])).stdout).toBe('');
  });
});

import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { runLatchkey } from '../command.ts';
import { allHelpTexts } from './help-texts.ts';

const run = promisify(execFile);
const file = join(mkdtempSync(join(tmpdir(), 'lk-man-')), 'latchkey.1');
let page: string;

beforeAll(async () => {
  const printed = await runLatchkey(['man'], { LATCHKEY_CONFIG: '/nowhere.toml', SOURCE_DATE_EPOCH: '1700000000' });
  expect(printed).toMatchObject({ status: 0, stderr: '' });
  page = printed.stdout;
  writeFileSync(file, page);
});

/** The rendered page, wide enough to keep every paragraph on one line. */
const read = async () =>
  (await run('man', ['-l', file], { env: { ...process.env, MANWIDTH: '400', LC_ALL: 'C.UTF-8' } })).stdout;

describe('the manual page', () => {
  test('the manual page has the date of the build', () => {
    expect(page.split('\n')[0]).toBe('.TH LATCHKEY 1 2023-11-14 Latchkey');
  });

  test.skipIf(!existsSync('/usr/bin/man'))(
    'the manual page has every command and option that the help shows',
    async () => {
      const text = await read();
      const helps = allHelpTexts().filter(({ commands }) => commands.length === 0);
      expect(helps.length).toBeGreaterThan(15);
      const general = text.slice(text.indexOf('\nOPTIONS'), text.indexOf('\nCOMMANDS'));
      for (const { path, options } of helps) {
        const from = text.search(new RegExp(`^ {3}latchkey ${path.join(' ')}( |$)`, 'm'));
        expect(from, path.join(' ')).toBeGreaterThan(0);
        const own = /^.*\n( {7}.*\n|\n)*/.exec(text.slice(from))?.[0] ?? '';
        for (const option of options) {
          const isListed = (part: string) => new RegExp(`^ {7}(-\\w, )?${option}( |$)`, 'm').test(part);
          expect(isListed(own) || isListed(general), `${path.join(' ')} ${option}`).toBe(true);
        }
      }
    },
  );

  test.skipIf(!existsSync('/usr/bin/man'))(
    'the manual page lists exit statuses, files and environment variables',
    async () => {
      const text = await read();
      for (const head of ['NAME', 'SYNOPSIS', 'EXIT STATUS', 'ENVIRONMENT', 'FILES', 'SEE ALSO'])
        expect(text).toMatch(new RegExp(`^${head}$`, 'm'));
      for (const word of ['/etc/latchkey/latchkey.toml', 'LATCHKEY_CONFIG', 'LATCHKEY_DEBUG', 'NO_COLOR'])
        expect(text).toContain(word);
    },
  );

  test.skipIf(!existsSync('/usr/bin/man'))('the manual page causes no warnings in man', async () => {
    const env = { ...process.env, LC_ALL: 'C.UTF-8' };
    const { stderr } = await run('man', ['--warnings', '-E', 'UTF-8', '-l', '-Tutf8', '-Z', file], { env });
    expect(stderr).toBe('');
  });

  test.skipIf(!existsSync('/usr/bin/mandoc'))('the manual page causes no warnings in mandoc', async () => {
    expect((await run('mandoc', ['-T', 'lint', file])).stdout).toBe('');
  });

  test('the help does not list the command that prints the manual page', async () => {
    expect((await runLatchkey(['--help'])).stdout).not.toMatch(/^ {2}man /m);
  });
});

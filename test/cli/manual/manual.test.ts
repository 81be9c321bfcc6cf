import { beforeAll, describe, expect, test } from 'vitest';
import { runLatchkey } from '../command.ts';
import { allHelpTexts } from './help-texts.ts';

let page: string;
/** The sections of the page and of its commands, each with its heading first. */
let sections: string[];

beforeAll(async () => {
  const printed = await runLatchkey(['man'], { LATCHKEY_CONFIG: '/nowhere.toml', SOURCE_DATE_EPOCH: '1700000000' });
  expect(printed).toMatchObject({ status: 0, stderr: '' });
  page = printed.stdout;
  sections = page.replaceAll('\\-', '-').split(/^\.S[HS] /m);
});

describe('the manual page', () => {
  test('the manual page has the date of the build', () => {
    expect(page.split('\n')[0]).toBe('.TH LATCHKEY 1 2023-11-14 Latchkey');
  });

  test('the manual page has every command and option that the help shows', () => {
    const helps = allHelpTexts().filter(({ commands }) => commands.length === 0);
    expect(helps.length).toBeGreaterThan(15);
    const general = sections.find((section) => section.startsWith('OPTIONS\n')) ?? '';
    for (const { path, options } of helps) {
      const heading = new RegExp(`^"latchkey ${path.join(' ')}[ "]`);
      const own = sections.find((section) => heading.test(section));
      expect(own, path.join(' ')).toBeDefined();
      for (const option of options)
        expect(`${own}${general}`, path.join(' ')).toMatch(new RegExp(`^\\.B (-\\w, )?${option}( |$)`, 'm'));
    }
  });

  test('the manual page lists exit statuses, files and environment variables', () => {
    const headings = sections.map((section) => section.split('\n')[0]);
    expect(headings).toEqual(
      expect.arrayContaining(['NAME', 'SYNOPSIS', 'EXIT STATUS', 'ENVIRONMENT', 'FILES', 'SEE ALSO']),
    );
    for (const word of ['/etc/latchkey/latchkey.toml', 'LATCHKEY_CONFIG', 'LATCHKEY_DEBUG', 'NO_COLOR'])
      expect(page).toContain(word);
  });
});

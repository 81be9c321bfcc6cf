// Prints the manual page latchkey.toml(5): the tables of keys of docs/configuration.md.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatEntry, textLines } from '../../src/cli/manual/man-page.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/configuration.md'), 'utf8');
const date = new Date(1000 * Number(process.env['SOURCE_DATE_EPOCH'] ?? 0)).toISOString().slice(0, 10);

/** The keys of a table, with their defaults and meanings; none if the section has no such table. */
function keysOf(section: string, prefix: string): string[] {
  const [, rows = ''] = /^\| key \| default \| meaning[^\n]*\n\|[-|]+\|\n((?:\|[^\n]*\n)+)/m.exec(section) ?? [];
  return rows.split('\n').flatMap((row) => {
    const [, key = '', usual = '', meaning = ''] = row.split(/(?<!\\)\|/).map(withoutMarkup);
    if (key === '') return [];
    const term = key
      .split(', ')
      .map((one) => `${prefix}${one}`)
      .join(', ');
    return formatEntry({ term, text: usual === '' ? meaning : `${meaning} (default: ${usual})` });
  });
}

/** Plain text: a link is its words. */
function withoutMarkup(text: string): string {
  return text
    .replaceAll(/\[([^\]]+)\]\([^)]*\)/g, '$1')
    .replaceAll(/[`*]/g, '')
    .replaceAll('\\|', '|')
    .trim();
}

const sections = page.split(/^## /m).flatMap((section, index) => {
  const keys = keysOf(section, index === 0 ? '' : 'portals.NAME.');
  const [heading = ''] = section.split('\n');
  return keys.length === 0 ? [] : [`.SH ${index === 0 ? 'KEYS' : `"${heading.toUpperCase()}"`}`, ...keys];
});

console.log(
  [
    `.TH LATCHKEY.TOML 5 ${date} Latchkey`,
    '.SH NAME',
    ...textLines('latchkey.toml - configuration of the Latchkey hub'),
    '.SH DESCRIPTION',
    ...textLines(
      'The hub reads /etc/latchkey/latchkey.toml, a file in TOML, when it starts and at latchkey reload. hub.name = "Cellar" is the same as name = "Cellar" below [hub]. /usr/share/doc/latchkey/docs/configuration.md says more, with examples.',
    ),
    ...sections,
    '.SH SEE ALSO',
    ...textLines('latchkey(1), /usr/share/doc/latchkey/examples/latchkey.toml'),
  ].join('\n'),
);

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { authorizeRows } from './checklist/authorize.ts';
import { helperRows } from './checklist/helper.ts';
import { tokenRows } from './checklist/token.ts';
import { whoamiRows } from './checklist/whoami.ts';

const PARTS = { token: tokenRows, authorize: authorizeRows, whoami: whoamiRows, helper: helperRows };

for (const [endpoint, rows] of Object.entries(PARTS)) {
  test.for(rows)(`${endpoint}: $section: $requirement`, ({ check }) => check());
}

test('docs/emulator-checklist.md has a row for each of these tests, and no other', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/emulator-checklist.md'), 'utf8');
  const written = text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Endpoint '))
    .map((line) => line.slice(2, -2).split(' | '));
  const tested = Object.entries(PARTS).flatMap(([endpoint, rows]) =>
    rows.map(({ section, requirement }) => [endpoint, section, requirement]),
  );
  expect(written).toEqual(tested);
});

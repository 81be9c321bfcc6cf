import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('docs/emulator-checklist.md has a row for each test of the checklist, and no other', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../docs/emulator-checklist.md'), 'utf8');
  const written = [...guide.matchAll(/^\| (?!Endpoint )(.+?) \| (.+?) \| (.+?) \|$/gm)].map((row) => row.slice(1));
  const folder = join(import.meta.dirname, 'checklist');
  const tested = readdirSync(folder).flatMap((file) => {
    const titles = readFileSync(join(folder, file), 'utf8').matchAll(/^test\('(.+?): (.+?)', async/gm);
    return [...titles].map(([, section, requirement]) => [file.replace('.test.ts', ''), section, requirement]);
  });
  expect(tested.toSorted()).toEqual(written.toSorted());
});

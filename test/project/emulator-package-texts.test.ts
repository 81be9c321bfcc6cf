import { posix } from 'node:path';
import { expect, test } from 'vitest';
import { PAGES, packageTexts } from '../../scripts/emulator-package.d/readme.ts';
import { root } from './checkout.ts';

test('the pages of the npm package of the emulator link only to its own files, and name only its command', () => {
  const texts = packageTexts(root);
  const files = new Set(['LICENSE', ...texts.keys(), ...PAGES.map((page) => `docs/${page}`)]);
  const links = [...texts].flatMap(([file, text]) =>
    [...text.matchAll(/\]\((?![a-z]+:|#)([^)#]+)/g)].map(([, path = '']) => posix.join(posix.dirname(file), path)),
  );
  expect(links).toContain('docs/portal.md');
  expect(links.filter((link) => !files.has(link))).toEqual([]);
  expect(texts.get('README.md')).toContain('npx latchkey-emulator exam');
  expect(texts.get('docs/exam-your-client.md')).toContain('npx latchkey-emulator exam -- sh client.sh');
  const others = [...texts].filter(([file]) => file !== 'CHANGELOG.md' && file !== 'LICENSE');
  expect(others.filter(([, text]) => /latchkey emulator|scripts\/(?:latchkey|build)/.test(text))).toEqual([]);
});

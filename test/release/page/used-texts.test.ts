import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { en } from '../../../src/page/texts/en.ts';
import { flat } from '../../page/flat-texts.ts';
import { root, runCommand, temporaryFolder } from '../../project/checkout.ts';

/**
 * The type of the texts with only their groups, each of which has its path in its type. The compiler then reports each
 * use of a text with its group and its name. A use by a computed key counts for the whole group.
 */
const GROUPS_ALONE = `type Groups<T, Path extends string> = { readonly path?: Path } & {
  readonly [K in keyof T & string as T[K] extends object ? (T[K] extends (...args: never[]) => unknown ? never : K) : never]:
    Groups<T[K], \`\${Path}.\${K}\`>;
};
export type Texts = Groups<typeof en, 'texts'> & { readonly language: string };
`;

/** The paths of all texts in use; a path that ends with a dot stands for a whole group. */
async function usedTexts(): Promise<Set<string>> {
  using folder = temporaryFolder();
  for (const part of ['core', 'system', 'page']) {
    cpSync(join(root, 'src', part), join(folder.path, 'src', part), { recursive: true });
  }
  const english = join(folder.path, 'src/page/texts/en.ts');
  const [before = ''] = readFileSync(english, 'utf8').split('export type Texts =');
  writeFileSync(english, before + GROUPS_ALONE);
  cpSync(join(root, 'tsconfig.json'), join(folder.path, 'tsconfig.json'));
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));
  const args = ['--noEmit', '--noErrorTruncation', '--pretty', 'false'];
  const { stdout } = await runCommand(join(root, 'node_modules/.bin/tsc'), args, { cwd: folder.path });
  const complaints = stdout.split('\n').filter((line) => line.includes('error TS'));
  return new Set(
    complaints.flatMap((line) => {
      const paths = [...line.matchAll(/"texts([\w.]*)"/g)].map(([, path = '']) => path.slice(1));
      const [, text] = /error TS2339: Property '(\w+)' does not exist/.exec(line) ?? [];
      return paths.map((path) => (text === undefined ? `${path}.` : `${path}.${text}`));
    }),
  );
}

test('every text is used in a source', async () => {
  const used = await usedTexts();
  const paths = [...flat(en).keys()].map((path) => path.replace('()', '')).filter((path) => path !== 'language');
  const unused = paths.filter((path) => !used.has(path) && !used.has(`${path.slice(0, path.lastIndexOf('.'))}.`));
  expect(used.size).toBeGreaterThan(100);
  expect(unused).toEqual([]);
});

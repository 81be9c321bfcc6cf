import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

/** The files of docs/ in the package. */
export const PAGES = [
  'emulator.md',
  'emulator-checklist.md',
  'exam-your-client.md',
  'exam-situations.md',
  'openapi-emulator.json',
  'portal.md',
  'images/emulator-console.png',
];
const FILES: ReadonlySet<string> = new Set(['LICENSE', 'CHANGELOG.md', ...PAGES.map((page) => `docs/${page}`)]);

/** The texts for people in the package, by their paths in it. @param root of the checkout */
export function packageTexts(root: string): ReadonlyMap<string, string> {
  const read = (file: string) => readFileSync(join(root, file), 'utf8');
  const pages = ['CHANGELOG.md', ...[...FILES].filter((file) => /^docs\/.*\.md$/.test(file))];
  return new Map([
    ['README.md', createReadme(read('docs/emulator.md'))],
    ...pages.map((file) => [file, localLinks(packageText(file, read), posix.dirname(file), (path) => path)] as const),
  ]);
}

/**
 * A page whose links to files that the package lacks are plain text.
 * @param folder of the page
 * @param link the new form of a link to another file
 */
function localLinks(text: string, folder: string, link: (path: string) => string): string {
  return text.replaceAll(
    /(!?)\[([^\]]+)\]\((?![a-z]+:)([^)#]*)(#[^)]*)?\)/g,
    (all, image: string, label: string, path: string, anchor = '') => {
      if (path === '') return link('') === '' ? all : `[${label}](${link('')}${anchor})`;
      if (!FILES.has(posix.join(folder, path))) return image === '' ? label : '';
      return `${image}[${label}](${link(path)}${anchor})`;
    },
  );
}

const PAGE = 'docs/emulator.md';
/** Says how to get the emulator in every form; the README has its own words for that. */
const GET = '## Get it';
const START = '## Start it';
/** The first section of the page that is not in the README. */
const END = '## Host names';

const GET_PACKAGE = `${GET}

It needs Node.js 22.13 or newer, and no native module. FILE is the path of the archive, such as \`./latchkey-emulator-1.2.3.tgz\`; if the package is in
your registry, write \`latchkey-emulator\` instead.

\`\`\`sh
npx --package=FILE latchkey-emulator   # runs it
npm install --save-dev FILE            # for the tests of a project
\`\`\`
`;

/** A page with the commands of the package. */
function packageText(file: string, read: (file: string) => string): string {
  if (!file.startsWith('docs/')) return read(file);
  return packageCommands(file === PAGE ? readPage(read(file)) : read(file));
}

function packageCommands(text: string): string {
  return text.replaceAll(/(?:\.\/scripts\/)?latchkey emulator/g, 'npx latchkey-emulator');
}

/** docs/emulator.md with the ways to get the package alone. */
function readPage(page: string): string {
  return `${page.slice(0, sectionAt(page, GET))}\n${GET_PACKAGE}${page.slice(sectionAt(page, START))}`;
}

/** @throws Error if the page lacks the section */
function sectionAt(page: string, heading: string): number {
  const at = page.indexOf(`\n${heading}\n`);
  if (at === -1) throw new Error(`${PAGE} has no section "${heading}", which the README of the package needs`);
  return at;
}

/**
 * The README of the npm package: the beginning of docs/emulator.md, with the commands and the import of the package.
 * @param page the text of docs/emulator.md
 * @throws Error if the page lacks one of the sections between which the README begins and ends
 */
function createReadme(page: string): string {
  const text = readPage(page);
  const beginning = packageCommands(text.slice(0, sectionAt(text, END))).replace(/^# .*$/m, '# latchkey-emulator');
  return `${localLinks(beginning, 'docs', (path) => (path === '' ? PAGE : `docs/${path}`)).trim()}

## More

- [${PAGE}](${PAGE}): all settings, faults, the API and the library
- [CHANGELOG.md](CHANGELOG.md): what has changed in Latchkey, of which the emulator is a part
- [LICENSE](LICENSE)
`;
}

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

/**
 * The README of the npm package: the beginning of docs/emulator.md, with the commands and the import of the package.
 * @param page the text of docs/emulator.md
 * @param files the package's files; a link to another file of the checkout becomes plain text
 * @throws Error if the page lacks one of the sections between which the README begins and ends
 */
export function createReadme(page: string, files: ReadonlySet<string>): string {
  const [get, start, end] = [GET, START, END].map((heading) => {
    const at = page.indexOf(`\n${heading}\n`);
    if (at === -1) throw new Error(`${PAGE} has no section "${heading}", which the README of the package needs`);
    return at;
  });
  const beginning = `${page.slice(0, get)}\n${GET_PACKAGE}${page.slice(start, end)}`
    .replaceAll('./scripts/latchkey emulator', 'npx latchkey-emulator')
    .replace(/^# .*$/m, '# latchkey-emulator')
    .replaceAll(
      /(!?)\[([^\]]+)\]\((?!https?:)([^)#]*)(#[^)]*)?\)/g,
      (_all, image: string, text: string, path, anchor) => {
        const target = path === '' ? PAGE : `docs/${path}`;
        if (!files.has(target)) return image === '' ? text : '';
        return `${image}[${text}](${target}${anchor ?? ''})`;
      },
    );
  return `${beginning.trim()}

## More

- [${PAGE}](${PAGE}): all settings, faults, the API and the library
- [CHANGELOG.md](CHANGELOG.md): what has changed in Latchkey, of which the emulator is a part
- [LICENSE](LICENSE)
`;
}

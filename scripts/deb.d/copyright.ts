// debian/copyright: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
import { copyrightsOf, type Part } from './parts.ts';

const FORMAT = 'https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/';

/** Of the project itself: until its makers have chosen a licence, nobody is given one. */
const UNLICENSED =
  'No licence has been chosen for Latchkey itself yet: all rights are reserved.\nThe licences of the parts inside, below, are not touched by that.';

/**
 * The machine-readable copyright file, with every text.
 * @param licence of package.json
 */
export function copyrightFile(licence: string, parts: readonly Part[]): string {
  const names = new Map<string, string>();
  const texts: string[] = [];
  const files = parts.map((part) => {
    // The same licence by another author is another text.
    const name = names.get(part.text) ?? `${part.licence}-${names.size + 1}`;
    if (!names.has(part.text)) {
      names.set(part.text, name);
      texts.push(`License: ${name}\n${indented(part.text)}`);
    }
    const copyright = copyrightsOf(part).map((line) => line.replace(/^copyright:?\s*/i, ''));
    return [
      `Files: ${part.folder}/*`,
      `Comment: ${part.name} ${part.version} (${part.licence})`,
      `Copyright: ${copyright.join('\n           ')}`,
      `License: ${name}`,
    ].join('\n');
  });
  const header = `Format: ${FORMAT}\nUpstream-Name: latchkey\nComment: Paths are those of the sources: what a package runs is bundled from them.`;
  const own = `Files: *\nCopyright: The authors of Latchkey\nLicense: ${licence}\n${indented(UNLICENSED)}`;
  return `${[header, own, ...files, ...texts].join('\n\n')}\n`;
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.trim() === '' ? ' .' : ` ${line.trimEnd()}`))
    .join('\n');
}

import { Failure } from './failure.ts';

/** What commands and addresses call an appliance or a connection, and what people call it. */
export interface Named {
  /** Unique among its kind, see {@link checkName}. */
  readonly name: string;
  /** What may stand on the cabinet, such as "Wärmepumpe Keller", see {@link checkTitle}. The name is made from it. */
  readonly title: string;
}

const NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;
/** Characters of a name. */
const MAX_NAME_LENGTH = 63;
/** Characters of a title. */
export const MAX_TITLE_LENGTH = 64;
/** Excludes characters that move the cursor, hide text or break the line. */
const TITLE = new RegExp(`^[^\\p{C}\\p{Zl}\\p{Zp}]{1,${MAX_TITLE_LENGTH}}$`, 'u');

/**
 * Checks the name of an appliance, a connection or a portal, and returns it.
 * @throws Failure `name_invalid`
 */
export function checkName(what: 'appliance' | 'connection' | 'portal', name: string): string {
  if (NAME.test(name)) return name;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(name.slice(0, 80))} is not a valid ${what} name: use 1 to 63 of a-z, 0-9 and "-", beginning with a letter or digit`,
  );
}

/**
 * Checks what a person calls an appliance or a connection.
 * @returns the title, without spaces around it
 * @throws Failure `name_invalid`
 */
export function checkTitle(what: 'appliance' | 'connection', typed: string): string {
  const title = typed.slice(0, 1000).normalize('NFC').trim();
  if (TITLE.test(title)) return title;
  throw new Failure(
    'name_invalid',
    `${JSON.stringify(title.slice(0, 80))} is not a valid ${what} name: use 1 to 64 letters, digits, spaces and signs, in one line`,
  );
}

/** What is left of a title that a stranger's device has sent, as {@link checkTitle} permits it; it may be empty. */
function cleanTitle(sent: string): string {
  const printable = sent
    .slice(0, 1000)
    .normalize('NFC')
    .replaceAll(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  return [...printable].slice(0, MAX_TITLE_LENGTH).join('').trim();
}

/** How German writes its own letters without them. */
const GERMAN_LETTERS: Readonly<Record<string, string>> = { ä: 'ae', ö: 'oe', ü: 'ue', ß: 'ss' };

/** The name that is made from a title, as in {@link deriveNamed}; empty if nothing is left of it. */
export function nameFromTitle(title: string): string {
  return title
    .slice(0, 1000)
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[äöüß]/g, (letter) => GERMAN_LETTERS[letter] ?? '')
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, MAX_NAME_LENGTH)
    .replace(/-+$/, '');
}

/**
 * Makes a name and a title from what a stranger's device has sent, the title as {@link cleanTitle}. The name is in lower
 * case, with "ae" and the like for German letters, the others without accents, and "-" for everything but a-z and 0-9, cut
 * to 63 characters. It is `fallback` if nothing is left, and gets "-2", "-3" and so on appended if it is taken; then the
 * title gets the number too, so that people can tell the devices apart.
 */
export function deriveNamed(sent: string, fallback: string, taken: (name: string) => boolean): Named {
  const base = nameFromTitle(sent) || fallback;
  const title = cleanTitle(sent);
  if (!taken(base)) return { name: base, title: title || base };
  for (let number = 2; ; number++) {
    const name = withSuffix(base, `-${number}`, MAX_NAME_LENGTH);
    if (!taken(name)) return { name, title: title === '' ? name : withSuffix(title, ` ${number}`, MAX_TITLE_LENGTH) };
  }
}

/** @param max characters of the result */
function withSuffix(text: string, suffix: string, max: number): string {
  return [...text].slice(0, max - suffix.length).join('') + suffix;
}

/**
 * Finds what a person named: by its name, by its title, or by the name that is made from such a title. If several have
 * this title, none is meant.
 */
export function findNamed<Thing extends Named>(things: readonly Thing[], typed: string): Thing | undefined {
  const title = typed.normalize('NFC').trim();
  const byName = (name: string) => things.find((thing) => thing.name === name);
  const [found, ...others] = things.filter((thing) => thing.title === title);
  return byName(typed) ?? (others.length > 0 ? undefined : (found ?? byName(nameFromTitle(typed))));
}

/** What {@link findNamed} finds. @throws Failure `appliance_unknown`, `connection_unknown` or `name_invalid` */
export function getNamed<Thing extends Named>(
  what: 'appliance' | 'connection',
  things: readonly Thing[],
  typed: string,
): Thing {
  const found = findNamed(things, typed);
  if (found !== undefined) return found;
  const title = checkTitle(what, typed);
  const names = things.flatMap((thing) => (thing.title === title ? [thing.name] : []));
  // People know the own connection of an appliance only as the appliance.
  const [kind, list] = what === 'connection' ? ['appliance or connection', 'status'] : [what, `${what} list`];
  throw new Failure(
    `${what}_unknown`,
    names.length > 1
      ? `several ${what}s are called ${title}: use the name of one of them (${names.join(', ')})`
      : `there is no ${kind} ${title}: "latchkey ${list}" lists the existing ones`,
  );
}

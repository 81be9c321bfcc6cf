// What is inside a package of ours, with its licences, and the copyright file that has them all.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

/** One piece of software inside, as it was published. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly licence: string;
  /** The licence's whole text, with what notice there is beside it. */
  readonly text: string;
  /** Below the checkout's root. */
  readonly folder: string;
  /** https://github.com/package-url/purl-spec */
  readonly purl: string;
}

/** A licence by its SPDX identifier, with its whole text. */
export interface Licence {
  readonly id: string;
  readonly text: string;
}

const manifestSchema = v.object({ name: v.string(), version: v.string(), license: v.string() });

/** Below node_modules, each package by itself: `node_modules/a/node_modules/@b/c`. */
const PACKAGE = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;
const LICENCE_FILE = /^(licen[cs]e|copying|notice|copyrightnotice)(\.(md|txt))?$/i;

/**
 * The npm packages that files come from, by name and version.
 * @param files below the root
 * @throws Error where a package comes without the text of its licence
 */
export function npmComponents(root: string, files: readonly string[]): Component[] {
  const folders = new Set(files.flatMap((file) => PACKAGE.exec(file)?.[0] ?? []));
  return [...folders].map((folder) => npmComponent(root, folder)).sort(byName);
}

/**
 * One npm package.
 * @param folder below the root
 * @throws Error as {@link npmComponents}
 */
export function npmComponent(root: string, folder: string): Component {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const { name, version, license } = v.parse(manifestSchema, manifest);
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return { name, version, licence: license, text: licenceText(root, folder, name), folder, purl };
}

/** SQLite, as better-sqlite3's binary has it inside. */
export function sqliteComponent(root: string): Component {
  const folder = 'node_modules/better-sqlite3/deps/sqlite3';
  const header = readFileSync(join(root, folder, 'sqlite3.h'), 'utf8');
  const version = /^#define SQLITE_VERSION\s+"([\d.]+)"/m.exec(header)?.[1];
  if (version === undefined) throw new Error(`${folder}/sqlite3.h does not say its version`);
  const text = 'The author disclaims copyright to this source code: https://sqlite.org/copyright.html';
  return { name: 'sqlite', version, licence: 'blessing', text, folder, purl: `pkg:generic/sqlite@${version}` };
}

/** The holders of the copyright, as the text of a part's licence names them. */
export function copyrightsOf({ text, name }: Component): string[] {
  const found = copyrightLines(text);
  return found.length > 0 ? found : [`The authors of ${name}`];
}

function copyrightLines(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/^[\s/*#"'-]+|[\s*"]+$/g, ''));
  const found = lines.filter((line) => /^(?:copyright|\(c\)|©)\s.*(?:\d{4}|\(c\)|©|contributors|\S@\S)/i.test(line));
  return [...new Set(found)].map((line) => line.replace(/^copyright:?\s*/i, ''));
}

function licenceText(root: string, folder: string, name: string): string {
  const own = readdirSync(join(root, folder)).filter((file) => LICENCE_FILE.test(file));
  // For packages that name their licence, and come without its text.
  const ours = join(import.meta.dirname, 'licences', `${name.replace('/', '-')}.txt`);
  const files = own.sort().map((file) => join(root, folder, file));
  if (files.length === 0 && existsSync(ours)) files.push(ours);
  const text = files.map((file) => readFileSync(file, 'utf8').replaceAll('\r', '').trim()).join('\n\n');
  if (text === '') throw new Error(`${folder} comes without the text of its licence: put it into ${ours}`);
  return text;
}

function byName(a: Component, b: Component): number {
  return a.purl < b.purl ? -1 : 1;
}

/** The form of debian/copyright. */
const FORMAT = 'https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/';

/**
 * The machine-readable copyright file, with every text.
 * @param own Latchkey itself
 */
export function copyrightFile(own: Licence, parts: readonly Component[]): string {
  const names = new Map<string, string>();
  const texts: string[] = [];
  const files = parts.map((part) => {
    // The same licence by another author is another text.
    const name = names.get(part.text) ?? `${part.licence}-${names.size + 1}`;
    if (!names.has(part.text)) {
      names.set(part.text, name);
      texts.push(`License: ${name}\n${indented(part.text)}`);
    }
    return [
      `Files: ${part.folder}/*`,
      `Comment: ${part.name} ${part.version} (${part.licence})`,
      `Copyright: ${copyrightsOf(part).join('\n           ')}`,
      `License: ${name}`,
    ].join('\n');
  });
  const header = `Format: ${FORMAT}\nUpstream-Name: latchkey\nComment: Paths are those of the sources: what a package runs is bundled from them.`;
  const ours = `Files: *\nCopyright: ${copyrightLines(own.text).join('\n           ')}\nLicense: ${own.id}\n${indented(own.text)}`;
  return `${[header, ours, ...files, ...texts].join('\n\n')}\n`;
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.trim() === '' ? ' .' : ` ${line.trimEnd()}`))
    .join('\n');
}

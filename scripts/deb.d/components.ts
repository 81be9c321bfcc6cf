// The components of the Debian package with their licences, and the copyright file.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';

/** A third-party component of the package. */
export interface Component {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly licence: string;
  /** The full text of the licence, and of notices if there are any. */
  readonly text: string;
  /** Relative to the checkout's root. */
  readonly folder: string;
  /** https://github.com/package-url/purl-spec */
  readonly purl: string;
}

/** A licence: its SPDX identifier and its full text. */
export interface Licence {
  readonly id: string;
  readonly text: string;
}

const manifestSchema = v.object({ name: v.string(), version: v.string(), license: v.string() });

/** The folder of the innermost package of a path: `node_modules/a/node_modules/@b/c`. */
const PACKAGE = /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/;
const LICENCE_FILE = /^(licen[cs]e|copying|notice|copyrightnotice)(\.(md|txt))?$/i;

/**
 * The npm packages that files belong to, sorted by name and version.
 * @param files relative to the root
 * @throws Error if a package has no licence text
 */
export function npmComponents(root: string, files: readonly string[]): Component[] {
  const folders = new Set(files.flatMap((file) => PACKAGE.exec(file)?.[0] ?? []));
  return [...folders].map((folder) => npmComponent(root, folder)).sort(byName);
}

/**
 * One npm package.
 * @param folder relative to the root
 * @throws Error if it has no licence text
 */
export function npmComponent(root: string, folder: string): Component {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const { name, version, license } = v.parse(manifestSchema, manifest);
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return { name, version, licence: license, text: licenceText(root, folder, name), folder, purl };
}

/** SQLite, which is compiled into better-sqlite3's binary. */
export function sqliteComponent(root: string): Component {
  const folder = 'node_modules/better-sqlite3/deps/sqlite3';
  const header = readFileSync(join(root, folder, 'sqlite3.h'), 'utf8');
  const version = /^#define SQLITE_VERSION\s+"([\d.]+)"/m.exec(header)?.[1];
  if (version === undefined) throw new Error(`${folder}/sqlite3.h does not define SQLITE_VERSION`);
  const text = 'The author disclaims copyright to this source code: https://sqlite.org/copyright.html';
  return { name: 'sqlite', version, licence: 'blessing', text, folder, purl: `pkg:generic/sqlite@${version}` };
}

/** The copyright holders that a component's licence text names. */
function copyrightsOf({ text, name }: Component): string[] {
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
  // Our copy, for packages that name their licence but do not contain its text.
  const ours = join(import.meta.dirname, 'licences', `${name.replace('/', '-')}.txt`);
  const files = own.sort().map((file) => join(root, folder, file));
  if (files.length === 0 && existsSync(ours)) files.push(ours);
  const text = files.map((file) => readFileSync(file, 'utf8').replaceAll('\r', '').trim()).join('\n\n');
  if (text === '') throw new Error(`${folder} has no licence text: put it into ${ours}`);
  return text;
}

function byName(a: Component, b: Component): number {
  return a.purl < b.purl ? -1 : 1;
}

/** The format of debian/copyright. */
const FORMAT = 'https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/';

/**
 * The machine-readable copyright file, with all licence texts.
 * @param own Latchkey's own licence
 */
export function copyrightFile(own: Licence, parts: readonly Component[]): string {
  const names = new Map<string, string>();
  const texts: string[] = [];
  const files = parts.map((part) => {
    // The same licence with other copyright holders is a different text.
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
  const header = `Format: ${FORMAT}\nUpstream-Name: latchkey\nComment: Paths are those of the source tree, from which the program is bundled.`;
  const ours = `Files: *\nCopyright: ${copyrightLines(own.text).join('\n           ')}\nLicense: ${own.id}\n${indented(own.text)}`;
  return `${[header, ours, ...files, ...texts].join('\n\n')}\n`;
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.trim() === '' ? ' .' : ` ${line.trimEnd()}`))
    .join('\n');
}

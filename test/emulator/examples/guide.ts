import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../project/checkout.ts';

/**
 * The code block of a guide under a heading, in a language.
 * @param page the guide's file, relative to the root of the checkout
 * @throws Error if there is none, or more than one
 */
export function readExample(heading: string, language: string, page = 'docs/emulator.md'): string {
  const [text, ...more] = readExamples(heading, language, page);
  if (text === undefined || more.length > 0) throw new Error(`${heading} has not one block of ${language}`);
  return text;
}

/** The section under a heading. @throws Error if there is none, or more than one */
export function readSection(heading: string, page: string): string {
  const guide = readFileSync(join(root, page), 'utf8');
  const [section, ...more] = guide.split(/^## /m).filter((text) => text.startsWith(`${heading}\n`));
  if (section === undefined || more.length > 0) throw new Error(`the guide has not one section ${heading}`);
  return section;
}

/** All code blocks under a heading, see {@link readExample}. */
export function readExamples(heading: string, language: string, page: string): string[] {
  const section = readSection(heading, page);
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.flatMap(([, name, text = '']) => (name === language ? [text] : []));
}

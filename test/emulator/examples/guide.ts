import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../project/checkout.ts';

/**
 * The code block of docs/emulator.md under a heading, in a language.
 * @throws Error where there is none, or more than one
 */
export function example(heading: string, language: string): string {
  const guide = readFileSync(join(root, 'docs/emulator.md'), 'utf8');
  const [section, ...more] = guide.split(/^## /m).filter((one) => one.startsWith(`${heading}\n`));
  if (section === undefined || more.length > 0) throw new Error(`the guide has not one section ${heading}`);
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].filter(([, name]) => name === language);
  const [, , text] = blocks[0] ?? [];
  if (text === undefined || blocks.length > 1) throw new Error(`${heading} has ${blocks.length} blocks of ${language}`);
  return text;
}

// What makes a good text nearly good.
import type { Dice } from './dice.ts';

/** What parsers have fallen over. */
export const SPECIAL = [
  '%00',
  '%ff',
  '%',
  '..',
  '//',
  '\\',
  '"',
  "'",
  '<script>',
  '&',
  '=',
  '+',
  '\0',
  '\xff',
  '__proto__',
  'constructor',
  '%0d%0a',
  ';',
  '{{7*7}}',
  '-1',
  '1e999',
  '\u00e9',
  '?',
  '#',
  '[]',
  ':',
  '\r\n',
];

/** A text with one thing wrong: a piece gone, doubled, strange or upside down. */
export function mutated(dice: Dice, text: string): string {
  const at = dice.below(text.length + 1);
  const to = at + dice.below(8);
  const kinds = [
    () => text.slice(0, at) + text.slice(to),
    () => text.slice(0, to) + text.slice(at),
    () => text.slice(0, at) + dice.of(SPECIAL, '') + text.slice(at),
    () => text.slice(0, at) + String.fromCharCode(dice.below(256)) + text.slice(at + 1),
    () => text.slice(0, at),
    () => text.slice(0, at) + 'A'.repeat(dice.below(300)) + text.slice(at),
  ];
  return latin1(dice.of(kinds, () => text)());
}

/** Visible characters at random. */
export function soup(dice: Dice, longest: number): string {
  return Array.from({ length: dice.below(longest) }, () => String.fromCharCode(33 + dice.below(94))).join('');
}

/** What can't go over the wire as one byte goes as another one. */
export function latin1(text: string): string {
  return text.replaceAll(/[\u0100-\uffff]/g, '\xbf');
}

/** A JSON value of any type, seldom one that fits. */
export function value(dice: Dice): unknown {
  return dice.of<unknown>(VALUES, null);
}

const VALUES = [
  null,
  true,
  -1,
  0,
  1,
  1.5,
  1e21,
  '',
  'refuse',
  'revoke-family',
  'status',
  'x'.repeat(999),
  [],
  {},
  [[]],
  { a: 1 },
  '\u0000',
  2 ** 53,
];

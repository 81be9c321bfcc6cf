// fast-check arbitraries for the texts of requests. What they draw never depends on the values that are known at the
// moment, so that a seed and a path make the same choices again.
import fc from 'fast-check';

/** Texts that have broken parsers. */
const SPECIAL = [
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
] as const;

export const specialText: fc.Arbitrary<string> = fc.constantFrom(...SPECIAL);

/** Up to `longest` visible characters. They are not minimized. */
export function visibleText(longest: number): fc.Arbitrary<string> {
  return fc.noShrink(fc.string({ unit: 'grapheme-ascii', maxLength: longest, size: 'max' }));
}

/** A text repeated up to `most` times. */
export function repeatedText(text: string, most: number): fc.Arbitrary<string> {
  return fc.nat(most).map((times) => text.repeat(times));
}

/** `some` in `percent` of the cases, else `usual`, to which a finding shrinks. */
export function sometimes<T, U = T>(
  percent: number,
  some: fc.Arbitrary<T>,
  usual: fc.Arbitrary<U>,
): fc.Arbitrary<T | U> {
  return fc.oneof(
    { withCrossShrink: true },
    { arbitrary: usual, weight: 1000 - 10 * percent },
    { arbitrary: some, weight: 10 * percent },
  );
}

/** A template with arbitrary texts in its gaps. */
export function textTemplate(
  pieces: TemplateStringsArray,
  ...gaps: readonly fc.Arbitrary<string>[]
): fc.Arbitrary<string> {
  return fc.tuple(...gaps).map((filled) => pieces.map((piece, index) => piece + (filled[index] ?? '')).join(''));
}

/** Makes one change in a text. */
export type Mutation = (text: string) => string;

/** A piece is removed, doubled, replaced, inserted, cut off or much too long. */
export const mutation: fc.Arbitrary<Mutation> = fc
  .tuple(
    fc.nat(0xffff),
    fc.oneof(
      fc.nat(7).map((length) => (before: string, after: string) => before + after.slice(length)),
      fc.nat(7).map((length) => (before: string, after: string) => before + after.slice(0, length) + after),
      specialText.map((strange) => (before: string, after: string) => before + strange + after),
      fc.nat(255).map((code) => (before: string, after: string) => before + String.fromCharCode(code) + after.slice(1)),
      fc.constant((before: string) => before),
      repeatedText('A', 300).map((long) => (before: string, after: string) => before + long + after),
    ),
  )
  .map(([share, change]) => (whole: string) => {
    const at = Math.floor((share / 0x10000) * (whole.length + 1));
    return toLatin1(change(whole.slice(0, at), whole.slice(at)));
  });

/** A text with one mutation. */
export function mutatedText(whole: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.tuple(whole, mutation).map(([right, change]) => change(right));
}

/** Replaces characters that Latin-1 does not have. */
export function toLatin1(whole: string): string {
  return whole.replaceAll(/[\u0100-\uffff]/g, '\xbf');
}

export function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}

/** A JSON value of any type, which is rarely valid. */
export const jsonValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    -1,
    0,
    1,
    1.5,
    1e21,
    2 ** 53,
    '',
    'refuse',
    'revoke-family',
    'status',
    'x'.repeat(999),
    '\u0000',
  ),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Merges members of a form or of a JSON object. */
export function mergedMembers<T>(...parts: readonly fc.Arbitrary<Readonly<Record<string, T>>>[]) {
  return fc.tuple(...parts).map((all): Readonly<Record<string, T>> => Object.assign({}, ...all));
}

/** A member with an arbitrary value. */
export function member(name: string, of: fc.Arbitrary<string>): fc.Arbitrary<Readonly<Record<string, string>>> {
  return of.map((one) => ({ [name]: one }));
}

/** No members. */
export const noMembers: fc.Arbitrary<Readonly<Record<string, string>>> = fc.constant({});

/** Encodes members as a form. */
export type FormWriter = (members: Readonly<Record<string, string>>) => string;

/**
 * Encodes a form. If it is not `good`, a member may be doubled or missing, there may be 900 more, or the form is
 * mutated.
 */
export function formWriter(good: boolean): fc.Arbitrary<FormWriter> {
  const pairsOf = (members: Readonly<Record<string, string>>) =>
    Object.entries(members).map(([name, one]) => `${name}=${encodeURIComponent(toLatin1(one))}`);
  if (good) return fc.constant((members) => pairsOf(members).join('&'));
  const same: Mutation = (whole) => whole;
  const no = fc.constant(null);
  return fc
    .record({
      twice: sometimes(10, fc.nat(9), no),
      gone: sometimes(10, fc.nat(9), no),
      many: sometimes(2, fc.constant(900), fc.constant(0)),
      separator: sometimes(2, fc.constant(';'), fc.constant('&')),
      change: sometimes(25, mutation, fc.constant(same)),
    })
    .map(({ twice, gone, many, separator, change }) => (members) => {
      const pairs = pairsOf(members);
      if (twice !== null) pairs.push(...pairs.slice(twice % (pairs.length + 1)).slice(0, 1));
      if (gone !== null) pairs.splice(gone % (pairs.length + 1), 1);
      for (let index = 0; index < many; index += 1) pairs.push(`a${index}=1`);
      return change(pairs.join(separator));
    });
}

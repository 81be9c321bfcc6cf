import fc from 'fast-check';
import { type Mutation, mutation, specialText } from '../../scripts/fuzz.d/texts.ts';

/** Texts that break parsers of the formats that the hub reads, in addition to those for requests. */
const ODD_TEXTS = [
  ...['', '\r\n\r\n', '\u{feff}', '\u{202e}', '\u{d800}', '💥', '\x1b[31m', '\x7f', 'Basic ', 'Bearer '],
  ...['Content-Length: 1\r\n', 'Transfer-Encoding: chunked\r\n', 'Host: a\r\n', 'Expect: 100-continue\r\n'],
  ...['[[', ']]', '{}', '{', '}', 'null', 'true', 'NaN', 'inf', '0x', '9007199254740993', '"""', "'''", '1979-05-27'],
];
const oddText = fc.oneof(specialText, fc.constantFrom(...ODD_TEXTS));
const repeated = fc.tuple(oddText, fc.constantFrom(10, 1000, 20_000)).map(([text, times]) => text.repeat(times));

/** Inserts an odd text anywhere in a text. */
const insert: fc.Arbitrary<Mutation> = fc
  .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.oneof({ weight: 4, arbitrary: oddText }, repeated))
  .map(([share, odd]) => (text) => {
    const at = Math.floor(share * text.length);
    return text.slice(0, at) + odd + text.slice(at);
  });

/** A text with up to four mutations. */
function mutated(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(texts, fc.array(fc.oneof(mutation, insert), { maxLength: 4 }))
    .map(([text, changes]) => changes.reduce((whole, change) => change(whole), text));
}

/** One of these texts, unchanged or with a few mutations. */
export function mutatedTexts(...texts: readonly string[]): fc.Arbitrary<string> {
  return mutated(fc.constantFrom(...texts));
}

/** JSON with these members. Each has a valid value, an invalid one, or is missing; sometimes the text is mutated. */
export function mutatedJson(members: Readonly<Record<string, readonly unknown[]>>): fc.Arbitrary<string> {
  const wrong = fc.oneof(fc.jsonValue({ maxDepth: 2 }), oddText);
  const entries = Object.entries(members).map(
    ([name, values]) => [name, fc.oneof(fc.constantFrom(...values), wrong)] as const,
  );
  const object = fc.record(Object.fromEntries(entries), { requiredKeys: [] }).map((value) => JSON.stringify(value));
  return fc.oneof(
    { weight: 6, arbitrary: object },
    { weight: 3, arbitrary: mutated(object) },
    { weight: 1, arbitrary: fc.json() },
  );
}

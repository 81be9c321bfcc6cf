import fc from 'fast-check';
import { type Mutation, mutation, specialText } from '../../scripts/fuzz.d/texts.ts';

/** What upsets parsers of every format that the hub reads, beside what requests are mutated with. */
const UPSETTING = [
  ...['', '\r\n\r\n', '\u{feff}', '\u{202e}', '\u{d800}', '💥', '\x1b[31m', '\x7f', 'Basic ', 'Bearer '],
  ...['Content-Length: 1\r\n', 'Transfer-Encoding: chunked\r\n', 'Host: a\r\n', 'Expect: 100-continue\r\n'],
  ...['[[', ']]', '{}', '{', '}', 'null', 'true', 'NaN', 'inf', '0x', '9007199254740993', '"""', "'''", '1979-05-27'],
];
const upsetting = fc.oneof(specialText, fc.constantFrom(...UPSETTING));
const many = fc.tuple(upsetting, fc.constantFrom(10, 1000, 20_000)).map(([text, times]) => text.repeat(times));

/** Something that upsets, anywhere in a text. */
const put: fc.Arbitrary<Mutation> = fc
  .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.oneof({ weight: 4, arbitrary: upsetting }, many))
  .map(([share, odd]) => (text) => {
    const at = Math.floor(share * text.length);
    return text.slice(0, at) + odd + text.slice(at);
  });

/** A text with a few things wrong, or none. */
function changed(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(texts, fc.array(fc.oneof(mutation, put), { maxLength: 4 }))
    .map(([text, changes]) => changes.reduce((whole, change) => change(whole), text));
}

/** One of these texts as it is, or with a few things wrong. */
export function mutatedTexts(...texts: readonly string[]): fc.Arbitrary<string> {
  return changed(fc.constantFrom(...texts));
}

/** JSON that has these members, each with a fitting value, a wrong one, or not at all, now and then mutated. */
export function mutatedJson(members: Readonly<Record<string, readonly unknown[]>>): fc.Arbitrary<string> {
  const wrong = fc.oneof(fc.jsonValue({ maxDepth: 2 }), upsetting);
  const entries = Object.entries(members).map(
    ([name, values]) => [name, fc.oneof(fc.constantFrom(...values), wrong)] as const,
  );
  const object = fc.record(Object.fromEntries(entries), { requiredKeys: [] }).map((value) => JSON.stringify(value));
  return fc.oneof(
    { weight: 6, arbitrary: object },
    { weight: 3, arbitrary: changed(object) },
    { weight: 1, arbitrary: fc.json() },
  );
}

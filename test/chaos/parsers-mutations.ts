import fc from 'fast-check';

/** What upsets parsers, of every format that the hub reads. */
const UPSETTING = [
  ...[
    '',
    '\0',
    '\r\n',
    '\r\n\r\n',
    '\n',
    ' ',
    '\t',
    '%',
    '%00',
    '%zz',
    '%ff',
    '+',
    '&',
    '=',
    ';',
    ':',
    ',',
    '?',
    '#',
    '/',
    '\\',
  ],
  ...['"', "'", '{', '}', '[', ']', '[[', ']]', '{}', 'null', 'true', '-1', '0', '1e999', 'NaN', '9007199254740993'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    '\u{feff}',
    '\u{202e}',
    '\u{d800}',
    'é',
    '💥',
    '\x1b[31m',
    '\x7f',
    '../',
    '..%2f',
  ],
  ...[
    'Content-Length: 1\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Host: a\r\n',
    'Expect: 100-continue\r\n',
    'Basic ',
    'Bearer ',
  ],
  ...['grant_type=client_credentials&', 'code=', 'error=', 'state=', '"""', "'''", '1979-05-27', 'inf', '0x', '_'],
];

type Mutation =
  | { readonly kind: 'cut' | 'double'; readonly from: number; readonly length: number }
  | { readonly kind: 'put'; readonly at: number; readonly text: string }
  | { readonly kind: 'end'; readonly at: number };

const place = fc.double({ min: 0, max: 1, noNaN: true });
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ kind: fc.constantFrom('cut', 'double'), from: place, length: fc.integer({ min: 1, max: 40 }) }),
  fc.record({
    kind: fc.constant('put' as const),
    at: place,
    text: fc.oneof(
      { weight: 4, arbitrary: fc.constantFrom(...UPSETTING) },
      fc.string({ unit: 'binary', maxLength: 8 }),
      fc
        .record({ text: fc.constantFrom(...UPSETTING), times: fc.constantFrom(10, 1000, 20_000) })
        .map(({ text, times }) => text.repeat(times)),
    ),
  }),
  fc.record({ kind: fc.constant('end' as const), at: place }),
);

function mutated(text: string, mutations: readonly Mutation[]): string {
  let result = text;
  for (const one of mutations) {
    const at = Math.floor(('from' in one ? one.from : one.at) * result.length);
    if (one.kind === 'put') result = result.slice(0, at) + one.text + result.slice(at);
    else if (one.kind === 'end') result = result.slice(0, at);
    else if (one.kind === 'cut') result = result.slice(0, at) + result.slice(at + one.length);
    else result = result.slice(0, at + one.length) + result.slice(at);
  }
  return result;
}

/** One of these texts as it is, or with a few things wrong. */
export function nearly(...texts: readonly string[]): fc.Arbitrary<string> {
  return fc
    .record({ text: fc.constantFrom(...texts), mutations: fc.array(mutation, { maxLength: 4 }) })
    .map(({ text, mutations }) => mutated(text, mutations));
}

/** JSON that has these members, each with a fitting value, a wrong one, or not at all, now and then mutated. */
export function nearlyJson(members: Readonly<Record<string, readonly unknown[]>>): fc.Arbitrary<string> {
  const wrong = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom(...UPSETTING));
  const entries = Object.entries(members).map(
    ([name, values]) => [name, fc.oneof(fc.constantFrom(...values), wrong)] as const,
  );
  const object = fc.record(Object.fromEntries(entries), { requiredKeys: [] }).map((value) => JSON.stringify(value));
  return fc.oneof(
    { weight: 6, arbitrary: object },
    {
      weight: 3,
      arbitrary: fc
        .record({ object, mutations: fc.array(mutation, { maxLength: 3 }) })
        .map((one) => mutated(one.object, one.mutations)),
    },
    { weight: 1, arbitrary: fc.json() },
  );
}

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SETUP_CODE_FORMAT, USER_CODE_FORMAT } from '../../src/core/letter-code.ts';
import { systemRandom } from '../../src/system/random.ts';

const LETTERS = [...'BCDFGHJKLMNPQRSTVWXZ'];
const KINDS = [
  { name: 'a user code', kind: USER_CODE_FORMAT, groups: 2 },
  { name: 'a setup code', kind: SETUP_CODE_FORMAT, groups: 4 },
];

describe.each(KINDS)('$name', ({ kind, groups }) => {
  const length = 4 * groups;
  const codes = fc
    .array(fc.constantFrom(...LETTERS), { minLength: length, maxLength: length })
    .map((letters) => letters.join(''));
  const between = fc.string({ unit: fc.constantFrom(' ', '-', '–', '\u00a0', '\u2011', '\t'), maxLength: 2 });
  const gapsOf = fc.array(between, { minLength: length + 1, maxLength: length + 1 });

  test(`a letter code of this kind is ${groups} groups of four letters without vowels or similar letters`, () => {
    const seen = new Set<string>();
    const shape = new RegExp(`^[BCDFGHJKLMNPQRSTVWXZ]{4}(?:-[BCDFGHJKLMNPQRSTVWXZ]{4}){${groups - 1}}$`);
    for (let count = 0; count < 1000; count++) {
      const code = kind.generate(systemRandom);
      expect(code).toMatch(shape);
      seen.add(code);
    }
    // Among a thousand codes of 34 bits, two are equal in about one of 50,000 runs.
    expect(seen.size).toBeGreaterThanOrEqual(kind === SETUP_CODE_FORMAT ? 1000 : 999);
  });

  test('a letter code is read in upper or lower case and with any gaps', () => {
    fc.assert(
      fc.property(codes, gapsOf, fc.boolean(), (code, gaps, small) => {
        const typed = [...(small ? code.toLowerCase() : code)].map((letter, index) => gaps[index] + letter).join('');
        const shown = code.replace(/.{4}(?!$)/g, '$&-');
        expect(kind.parse(typed + (gaps[length] ?? ''))).toBe(shown);
        expect(kind.parse(shown)).toBe(shown);
      }),
    );
  });
});

test('every letter of a generated code is equally likely', () => {
  const counts = new Map(LETTERS.map((letter) => [letter, 0]));
  for (let count = 0; count < 5000; count++) {
    for (const letter of USER_CODE_FORMAT.generate(systemRandom).replace('-', ''))
      counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  // 40,000 letters, about 2000 of each; eight standard deviations are about 350.
  expect(counts.size).toBe(20);
  for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(350);
});

test.each(['', 'BCDF', 'BCDFGHJKL', 'BCDFGHJA', 'BCDFGHJ1', 'BCDF_GHJK', 'ẞẞẞẞßßßß', `BCDFGHJK${' '.repeat(100)}`])(
  '%j is not a valid user code',
  (typed) => {
    expect(USER_CODE_FORMAT.parse(typed)).toBeNull();
  },
);

test.each([
  '',
  'BCDF-GHJK',
  'BCDF-GHJK-LMNP',
  'BCDF-GHJK-LMNP-QRSTV',
  'BCDF-GHJK-LMNP-QRSA',
  'BCDF-GHJK-LMNP-QRS1',
  'BCDF_GHJK_LMNP_QRST',
  'BCDF-GHJK-LMNP-QRS\0',
  '<b>F-GHJK-LMNP-QRST',
  `BCDFGHJKLMNPQRST${' '.repeat(100)}`,
])('%j is not a valid setup code', (typed) => {
  expect(SETUP_CODE_FORMAT.parse(typed)).toBeNull();
});

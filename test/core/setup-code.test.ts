import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newSetupCode, readSetupCode } from '../../src/core/setup-code.ts';
import { systemRandom } from '../../src/system/random.ts';

const LETTERS = [...'BCDFGHJKLMNPQRSTVWXZ'];
const codes = fc
  .array(fc.constantFrom(...LETTERS), { minLength: 12, maxLength: 12 })
  .map((letters) => letters.join(''));
const between = fc.string({ unit: fc.constantFrom(' ', '-', '–', '\u00a0', '\t'), maxLength: 2 });

test('a setup code is three groups of four letters that make no word, and another one each time', () => {
  const seen = new Set<string>();
  for (let count = 0; count < 1000; count++) {
    const code = newSetupCode(systemRandom);
    expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}(?:-[BCDFGHJKLMNPQRSTVWXZ]{4}){2}$/);
    seen.add(code);
  }
  expect(seen.size).toBe(1000);
});

test('a code is read however it was typed', () => {
  fc.assert(
    fc.property(codes, fc.array(between, { minLength: 13, maxLength: 13 }), fc.boolean(), (code, gaps, small) => {
      const typed = [...(small ? code.toLowerCase() : code)].map((letter, index) => gaps[index] + letter).join('');
      const shown = `${code.slice(0, 4)}-${code.slice(4, 8)}-${code.slice(8)}`;
      expect(readSetupCode(typed + (gaps[12] ?? ''))).toBe(shown);
      expect(readSetupCode(shown)).toBe(shown);
    }),
  );
});

test.each([
  '',
  'BCDF-GHJK',
  'BCDF-GHJK-LMNPQ',
  'BCDF-GHJK-LMNA',
  'BCDF-GHJK-LMN1',
  'BCDF_GHJK_LMNP',
  'BCDF-GHJK-LMN\0',
  '<b>F-GHJK-LMNP',
  `BCDFGHJKLMNP${' '.repeat(100)}`,
])('%j is no code', (typed) => {
  expect(readSetupCode(typed)).toBeNull();
});

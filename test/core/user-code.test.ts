import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newUserCode, readUserCode } from '../../src/core/user-code.ts';
import { systemRandom } from '../../src/system/random.ts';

const LETTERS = [...'BCDFGHJKLMNPQRSTVWXZ'];
const codes = fc.array(fc.constantFrom(...LETTERS), { minLength: 8, maxLength: 8 }).map((letters) => letters.join(''));
const between = fc.string({ unit: fc.constantFrom(' ', '-', '–', '\u00a0', '\u2011'), maxLength: 2 });

test('a user code is two groups of four letters that make no word and are not taken for one another', () => {
  for (let count = 0; count < 1000; count++) {
    expect(newUserCode(systemRandom)).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
  }
});

test('every letter is as likely as any other', () => {
  const counts = new Map(LETTERS.map((letter) => [letter, 0]));
  for (let count = 0; count < 5000; count++) {
    for (const letter of newUserCode(systemRandom).replace('-', '')) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  // 40,000 letters, 2000 of each: eight standard deviations are about 350.
  expect(counts.size).toBe(20);
  for (const count of counts.values()) expect(Math.abs(count - 2000)).toBeLessThan(350);
});

test('a code is read however it was typed', () => {
  fc.assert(
    fc.property(codes, fc.array(between, { minLength: 9, maxLength: 9 }), fc.boolean(), (code, gaps, small) => {
      const typed = [...(small ? code.toLowerCase() : code)].map((letter, index) => gaps[index] + letter).join('');
      expect(readUserCode(typed + (gaps[8] ?? ''))).toBe(`${code.slice(0, 4)}-${code.slice(4)}`);
    }),
  );
});

test.each(['', 'BCDF', 'BCDFGHJKL', 'BCDFGHJA', 'BCDFGHJ1', 'BCDF_GHJK', 'ẞẞẞẞßßßß', `BCDFGHJK${' '.repeat(100)}`])(
  '%j is no code',
  (typed) => {
    expect(readUserCode(typed)).toBeNull();
  },
);

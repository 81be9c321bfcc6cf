import { expect, test } from 'vitest';
import { comparisonCode, isComparisonCode } from '../../src/system/comparison-code.ts';

const ID = '6f9619ff-8b86-4011-b42d-00c04fc964ff';

test('a comparison code has six unambiguous letters in two groups and differs between appliances', () => {
  const codes = Array.from({ length: 2000 }, (_, number) => comparisonCode(`${ID}-${number}`));
  for (const code of codes) expect(code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{3}-[BCDFGHJKLMNPQRSTVWXZ]{3}$/);
  expect(new Set(codes).size).toBeGreaterThan(1990);
  // Every position can have every letter.
  for (const place of [0, 1, 2, 4, 5, 6]) expect(new Set(codes.map((code) => code[place])).size).toBe(20);
  expect(comparisonCode(ID)).toBe(comparisonCode(ID));
});

test('a comparison code is accepted in any spelling, and no other code is', () => {
  const code = comparisonCode(ID);
  const plain = code.replace('-', '');
  for (const typed of [
    code,
    plain,
    code.toLowerCase(),
    ` ${plain.slice(0, 2)} ${plain.slice(2)}\n`,
    code.replace('-', '–'),
  ]) {
    expect(isComparisonCode(typed, ID)).toBe(true);
  }
  for (const typed of ['', '-', plain.slice(1), `${code}B`, comparisonCode(`${ID}0`)]) {
    expect(isComparisonCode(typed, ID)).toBe(false);
  }
});

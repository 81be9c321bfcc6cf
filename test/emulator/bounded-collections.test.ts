import { expect, test } from 'vitest';
import { appendBounded, BoundedMap } from '../../src/emulator/bounded-collections.ts';

test('a bounded map drops the entry that was set the longest time ago', () => {
  const map = new BoundedMap<number>(2);
  map.set('a', 1);
  map.set('b', 2);
  map.set('a', 3);
  map.set('c', 4);
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([3, undefined, 4]);
  expect(map.values()).toEqual([3, 4]);
});

test('a bounded list keeps the newest entries in order', () => {
  const log: number[] = [];
  for (const entry of [1, 2, 3, 4, 5]) appendBounded(log, entry, 3);
  expect(log).toEqual([3, 4, 5]);
});

import { expect, test } from 'vitest';
import { Turns } from '../../src/broker/grants/turns.ts';
import { FakeTime } from '../support/fake-time.ts';

const PATIENCE = 5000;

/** Works that run until they are let go. */
function start(usual: number, urgent = usual, most = 1000) {
  const time = new FakeTime();
  const turns = new Turns({ usual, urgent, most, patience: PATIENCE }, time);
  const running = new Map<string, () => void>();
  const order: string[] = [];
  const take = (key: string, urgent = false) =>
    turns.take(key, urgent, async (wanted) => {
      order.push(wanted ? `${key}!` : key);
      await new Promise<void>((resolve) => running.set(key, resolve));
    });
  return { time, turns, order, take, end: (key: string) => running.get(key)?.() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('only so many run at once; each that ends lets the next one begin, in order', async () => {
  const { order, take, end } = start(2);
  const all = ['a', 'b', 'c', 'd'].map((key) => take(key));
  await Promise.resolve();
  expect(order).toEqual(['a', 'b']);
  end('b');
  await all[1];
  expect(order).toEqual(['a', 'b', 'c']);
  end('a');
  await all[0];
  expect(order).toEqual(['a', 'b', 'c', 'd']);
});

test('what somebody waits for goes first, also where they came later than it', async () => {
  const { turns, order, take, end } = start(1);
  const first = take('first');
  for (const key of ['a', 'b', 'c']) void take(key);
  void take('d', true);
  turns.hurry('b');
  end('first');
  await first;
  expect(order.at(-1)).toBe('b!');
});

test('what somebody waits for has more places, and what was waiting gets one as soon as somebody waits for it', async () => {
  const { turns, order, take, end } = start(1, 3);
  for (const key of ['a', 'b', 'c']) void take(key);
  void take('d', true);
  await settled();
  expect(order).toEqual(['a', 'd!']);
  turns.hurry('c');
  await settled();
  expect(order).toEqual(['a', 'd!', 'c!']);
  void take('e', true);
  end('d');
  await settled();
  expect(order).toEqual(['a', 'd!', 'c!', 'e!']);
  end('a');
  await settled();
  expect(order).toHaveLength(4);
});

test('those that hang hold up nobody who waits, until there are too many of them', async () => {
  const { time, order, take, end } = start(1, 2, 3);
  for (const key of ['a', 'b', 'c', 'd']) void take(key, true);
  await settled();
  expect(order).toEqual(['a!', 'b!']);
  time.skip(PATIENCE - 1);
  await settled();
  expect(order).toHaveLength(2);
  time.skip(1);
  await settled();
  expect(order).toEqual(['a!', 'b!', 'c!']);
  time.skip(PATIENCE);
  await settled();
  expect(order).toHaveLength(3);
  end('b');
  await settled();
  expect(order).toEqual(['a!', 'b!', 'c!', 'd!']);
});

test('where all hang that nobody waits for, one more at a time finds out whether the next would', async () => {
  const { time, order, take, end } = start(2);
  for (const key of ['a', 'b', 'c', 'd', 'e']) void take(key);
  time.skip(PATIENCE);
  await settled();
  expect(order).toEqual(['a', 'b', 'c']);
  end('c');
  await settled();
  expect(order).toEqual(['a', 'b', 'c', 'd']);
  time.skip(PATIENCE);
  await settled();
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('one that fails gives its place back', async () => {
  const turns = new Turns({ usual: 1, urgent: 1, most: 1, patience: PATIENCE }, new FakeTime());
  const failing = turns.take('a', false, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(await turns.take('b', false, async () => 7)).toBe(7);
});

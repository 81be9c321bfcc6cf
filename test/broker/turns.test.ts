import { expect, test } from 'vitest';
import { Turns } from '../../src/broker/turns.ts';

/** Works that run until they are let go. */
function start(most: number) {
  const turns = new Turns(most);
  const running = new Map<string, () => void>();
  const order: string[] = [];
  const take = (key: string, urgent = false) =>
    turns.take(key, urgent, async (wanted) => {
      order.push(wanted ? `${key}!` : key);
      await new Promise<void>((resolve) => running.set(key, resolve));
    });
  return { turns, order, take, end: (key: string) => running.get(key)?.() };
}

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

test('one that fails gives its place back', async () => {
  const turns = new Turns(1);
  const failing = turns.take('a', false, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(await turns.take('b', false, async () => 7)).toBe(7);
});

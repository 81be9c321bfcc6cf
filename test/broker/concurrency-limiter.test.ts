import { expect, test } from 'vitest';
import { ConcurrencyLimiter } from '../../src/broker/grants/concurrency-limiter.ts';
import { FakeTime } from '../support/fake-time.ts';

const TIMEOUT = 5000;

/** A limiter whose tasks run until the test ends them. */
function start(background: number, foreground = background, total = 1000) {
  const time = new FakeTime();
  const limiter = new ConcurrencyLimiter({ background, foreground, total, timeout: TIMEOUT }, time);
  const running = new Map<string, () => void>();
  const order: string[] = [];
  const run = (key: string, foreground = false) =>
    limiter.run(key, foreground, async (wanted) => {
      order.push(wanted ? `${key}!` : key);
      await new Promise<void>((resolve) => running.set(key, resolve));
    });
  return { time, limiter, order, run, end: (key: string) => running.get(key)?.() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('the concurrency limiter starts the next task in order each time a running one ends', async () => {
  const { order, run, end } = start(2);
  const all = ['a', 'b', 'c', 'd'].map((key) => run(key));
  await Promise.resolve();
  expect(order).toEqual(['a', 'b']);
  end('b');
  await all[1];
  expect(order).toEqual(['a', 'b', 'c']);
  end('a');
  await all[0];
  expect(order).toEqual(['a', 'b', 'c', 'd']);
});

test('the concurrency limiter starts a foreground or promoted task before background tasks that came earlier', async () => {
  const { limiter, order, run, end } = start(1);
  const first = run('first');
  for (const key of ['a', 'b', 'c']) void run(key);
  void run('d', true);
  limiter.promote('b');
  end('first');
  await first;
  expect(order.at(-1)).toBe('b!');
});

test('the concurrency limiter runs more foreground than background tasks, and starts a task once it is promoted', async () => {
  const { limiter, order, run, end } = start(1, 3);
  for (const key of ['a', 'b', 'c']) void run(key);
  void run('d', true);
  await settled();
  expect(order).toEqual(['a', 'd!']);
  limiter.promote('c');
  await settled();
  expect(order).toEqual(['a', 'd!', 'c!']);
  void run('e', true);
  end('d');
  await settled();
  expect(order).toEqual(['a', 'd!', 'c!', 'e!']);
  end('a');
  await settled();
  expect(order).toHaveLength(4);
});

test('hanging foreground tasks hold up another one only until the timeout, up to the total limit', async () => {
  const { time, order, run, end } = start(1, 2, 3);
  for (const key of ['a', 'b', 'c', 'd']) void run(key, true);
  await settled();
  expect(order).toEqual(['a!', 'b!']);
  time.skip(TIMEOUT - 1);
  await settled();
  expect(order).toHaveLength(2);
  time.skip(1);
  await settled();
  expect(order).toEqual(['a!', 'b!', 'c!']);
  time.skip(TIMEOUT);
  await settled();
  expect(order).toHaveLength(3);
  end('b');
  await settled();
  expect(order).toEqual(['a!', 'b!', 'c!', 'd!']);
});

test('while all background tasks hang, the concurrency limiter starts one more at a time after each timeout', async () => {
  const { time, order, run, end } = start(2);
  for (const key of ['a', 'b', 'c', 'd', 'e']) void run(key);
  time.skip(TIMEOUT);
  await settled();
  expect(order).toEqual(['a', 'b', 'c']);
  end('c');
  await settled();
  expect(order).toEqual(['a', 'b', 'c', 'd']);
  time.skip(TIMEOUT);
  await settled();
  expect(order).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('the concurrency limiter starts the next task after one that failed', async () => {
  const limiter = new ConcurrencyLimiter({ background: 1, foreground: 1, total: 1, timeout: TIMEOUT }, new FakeTime());
  const failing = limiter.run('a', false, () => Promise.reject(new Error('no')));
  await expect(failing).rejects.toThrow('no');
  expect(await limiter.run('b', false, async () => 7)).toBe(7);
});

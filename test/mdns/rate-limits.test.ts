import { expect, it } from 'vitest';
import { Throttle } from '../../src/mdns/sockets/rate-limits.ts';
import { FakeTime } from '../support/fake-time.ts';

it('a throttle runs the first task at once, and then only the last task of each interval, at its end', async () => {
  const time = new FakeTime();
  const throttle = new Throttle(time, 500);
  const done: number[] = [];
  for (let number = 1; number <= 3; number++) throttle.run(() => done.push(number));
  expect(done).toEqual([1]);
  await time.pass(500);
  expect(done).toEqual([1, 3]);
  throttle.run(() => done.push(4));
  await time.pass(499);
  expect(done).toEqual([1, 3]);
  await time.pass(1);
  expect(done).toEqual([1, 3, 4]);
  await time.pass(500);
  throttle.run(() => done.push(5));
  expect(done).toEqual([1, 3, 4, 5]);
});

it('a throttle drops its waiting task when it is reset, and runs the next one at once', async () => {
  const time = new FakeTime();
  const throttle = new Throttle(time, 500);
  const done: number[] = [];
  for (let number = 1; number <= 2; number++) throttle.run(() => done.push(number));
  throttle.reset();
  await time.pass(1000);
  expect(done).toEqual([1]);
  throttle.run(() => done.push(3));
  expect(done).toEqual([1, 3]);
});

it('a throttle with backoff doubles its interval after each task, and resets it after the longest interval', async () => {
  const time = new FakeTime();
  const throttle = new Throttle(time, 1000, 60_000);
  const ran: number[] = [];
  let seconds = 0;
  for (; seconds < 200; seconds++) {
    throttle.run(() => ran.push(seconds));
    await time.pass(1000);
  }
  expect(ran).toEqual([0, 1, 2, 6, 14, 30, 62, 122, 182]);
  expect(throttle.isBackingOff).toBe(true);
  await time.pass(60_000);
  const last = ran.length;
  await time.pass(120_000);
  expect(ran.length).toBe(last);
  expect(throttle.isBackingOff).toBe(false);
  throttle.run(() => ran.push(-1));
  expect(ran.at(-1)).toBe(-1);
});

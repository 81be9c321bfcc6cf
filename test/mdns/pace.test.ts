import { expect, it } from 'vitest';
import { Pace } from '../../src/mdns/pace.ts';
import { FakeTime } from '../support/fake-time.ts';

it('does the first at once, and of those that come in the pause the last one, at its end', async () => {
  const time = new FakeTime();
  const pace = new Pace(time, 500);
  const done: number[] = [];
  for (let number = 1; number <= 3; number++) pace.do(() => done.push(number));
  expect(done).toEqual([1]);
  await time.pass(500);
  expect(done).toEqual([1, 3]);
  pace.do(() => done.push(4));
  await time.pass(499);
  expect(done).toEqual([1, 3]);
  await time.pass(1);
  expect(done).toEqual([1, 3, 4]);
  await time.pass(500);
  pace.do(() => done.push(5));
  expect(done).toEqual([1, 3, 4, 5]);
});

it('does nothing of what waits once it is ended, and begins afresh', async () => {
  const time = new FakeTime();
  const pace = new Pace(time, 500);
  const done: number[] = [];
  for (let number = 1; number <= 2; number++) pace.do(() => done.push(number));
  pace.end();
  await time.pass(1000);
  expect(done).toEqual([1]);
  pace.do(() => done.push(3));
  expect(done).toEqual([1, 3]);
});

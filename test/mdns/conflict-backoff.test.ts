import { expect, it } from 'vitest';
import { ConflictBackoff } from '../../src/mdns/conflicts/conflict-backoff.ts';
import { FakeTime } from '../support/fake-time.ts';

it('settles the first conflict at once, and those that follow ever more seldom, but none is forgotten', async () => {
  const time = new FakeTime();
  const backoff = new ConflictBackoff(time);
  const settled: number[] = [];
  let seconds = 0;
  for (; seconds < 200; seconds++) {
    backoff.run(() => settled.push(seconds));
    await time.pass(1000);
  }
  // In the first ten seconds fewer than the 15 of RFC 6762, section 8.1.
  expect(settled).toEqual([0, 1, 2, 6, 14, 30, 62, 122, 182]);
  expect(backoff.hadConflict).toBe(true);
  await time.pass(60_000);
  const last = settled.length;
  await time.pass(120_000);
  expect(settled.length).toBe(last);
  expect(backoff.hadConflict).toBe(false);
  backoff.run(() => settled.push(-1));
  expect(settled.at(-1)).toBe(-1);
});

it('settles nothing any more at the end', async () => {
  const time = new FakeTime();
  const backoff = new ConflictBackoff(time);
  let settled = 0;
  for (let times = 0; times < 2; times++) backoff.run(() => settled++);
  backoff.end();
  await time.pass(120_000);
  backoff.run(() => settled++);
  expect(settled).toBe(1);
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import { FakeTime } from '../support/fake-time.ts';

function start() {
  const time = new FakeTime();
  const ran: string[] = [];
  const scheduler = new Scheduler({ clock: time, timers: time });
  const plan = (key: string, delay: number) => scheduler.plan(key, time.uptime + delay, () => ran.push(key));
  return { time, ran, scheduler, plan };
}

test('the scheduler runs each task once when it is due, in order of time', async () => {
  const { time, ran, plan } = start();
  plan('c', 30_000);
  plan('a', 10_000);
  plan('b', 20_000);
  await time.pass(9_999);
  expect(ran).toEqual([]);
  await time.pass(1);
  expect(ran).toEqual(['a']);
  await time.pass(3_600_000);
  expect(ran).toEqual(['a', 'b', 'c']);
  expect(time.armed).toBe(0);
});

test('the scheduler has one timer, which never exceeds a minute', async () => {
  const { time, plan, ran } = start();
  for (let i = 0; i < 1000; i += 1) plan(`thing ${i}`, 3_600_000 + i);
  expect(time.armed).toBe(1);
  await time.pass(7_200_000);
  expect(Math.max(...time.delays)).toBe(60_000);
  expect(ran).toHaveLength(1000);
});

test('a task that is already due runs at once, but only after plan has returned', async () => {
  const { time, ran, plan } = start();
  plan('late', -5000);
  expect(ran).toEqual([]);
  await time.pass(0);
  expect(ran).toEqual(['late']);
});

test('a task that came due during suspend runs within a minute after the machine wakes', async () => {
  const { time, ran, plan } = start();
  plan('a', 3_600_000);
  time.suspend(10 * 3_600_000);
  await time.pass(60_000);
  expect(ran).toEqual(['a']);
});

test('a disposed scheduler runs no task and has no timer', async () => {
  const { time, ran, plan, scheduler } = start();
  plan('a', 1000);
  scheduler[Symbol.dispose]();
  await time.pass(100_000);
  expect(ran).toEqual([]);
  expect(time.armed).toBe(0);
});

test('each task runs exactly at the last time it was planned for, after any sequence of plans and cancels', async () => {
  const delay = fc.integer({ min: 0, max: 300_000 });
  const key = fc.constantFrom('a', 'b', 'c', 'd');
  const step = fc.oneof(
    fc.record({ kind: fc.constant('plan' as const), key, delay }),
    fc.record({ kind: fc.constant('cancel' as const), key, delay }),
    fc.record({ kind: fc.constant('pass' as const), key, delay }),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const time = new FakeTime();
      const scheduler = new Scheduler({ clock: time, timers: time });
      const planned = new Map<string, number>();
      for (const one of steps) {
        if (one.kind === 'pass') await time.pass(one.delay);
        if (one.kind === 'cancel') {
          scheduler.cancel(one.key);
          planned.delete(one.key);
        }
        if (one.kind === 'plan') {
          const due = time.uptime + one.delay;
          planned.set(one.key, due);
          scheduler.plan(one.key, due, () => {
            expect(time.uptime).toBe(due);
            expect(planned.get(one.key)).toBe(due);
            planned.delete(one.key);
          });
        }
      }
      await time.pass(400_000);
      expect(planned.size).toBe(0);
    }),
    { numRuns: 50 },
  );
});

test('the scheduler reports for how long its next task has been overdue', async () => {
  const { time, plan, scheduler } = start();
  expect(scheduler.overdue).toBe(0);
  plan('a', 30_000);
  plan('b', 40_000);
  expect(scheduler.overdue).toBe(0);
  time.suspend(36_000);
  expect(scheduler.overdue).toBe(6_000);
  scheduler.cancel('a');
  expect(scheduler.overdue).toBe(0);
  time.suspend(10_000);
  expect(scheduler.overdue).toBe(6_000);
  await time.pass(60_000);
  expect(scheduler.overdue).toBe(0);
});

test('a task that plans itself again at once lets other work run in between', () => {
  const due: (() => void)[] = [];
  const clock = { now: () => ({ boot: 'boot', uptime: 0, wall: 0 }) };
  const timers = {
    after: (_delay: number, run: () => void) => {
      due.push(run);
      return () => undefined;
    },
    sleep: async () => undefined,
  };
  const scheduler = new Scheduler({ clock, timers });
  let ran = 0;
  const again = () => {
    ran += 1;
    if (ran < 1000) scheduler.plan('again', 0, again);
  };
  scheduler.plan('again', 0, again);
  due.shift()?.();
  expect(ran).toBe(1);
  due.at(-1)?.();
  expect(ran).toBe(2);
});

import { expect, test } from 'vitest';
import { Scheduler } from '../../src/broker/time/scheduler.ts';
import { feedWatchdog } from '../../src/daemon/watchdog.ts';
import { createLog } from '../../src/system/log.ts';
import { FakeTime } from '../support/fake-time.ts';

/** The unit's value, in ms. */
const LIMIT = 90_000;

/**
 * A daemon whose scheduler can be stopped, and the times of its watchdog keep-alives: on the clock of timers, in ms.
 */
function daemon(watchdog: number | null = LIMIT) {
  const time = new FakeTime();
  const startedAt = time.uptime;
  let suspended = 0;
  const now = () => time.uptime - startedAt - suspended;
  const feedTimes: number[] = [];
  const lines: Record<string, unknown>[] = [];
  let stuck = false;
  let hasHub = true;
  const scheduler = new Scheduler({
    clock: time,
    timers: { ...time, after: (delay, run) => time.after(delay, () => !stuck && run()), sleep: () => time.sleep(0) },
  });
  const feeding = feedWatchdog({
    service: { watchdogInterval: watchdog, feedWatchdog: () => feedTimes.push(now()) },
    overdueMs: () => scheduler.overdue,
    hasHub: () => hasHub,
    log: createLog('info', { write: (line) => lines.push(JSON.parse(line)) }),
    timers: time,
    now,
  });
  return {
    time,
    now,
    feedTimes,
    lines,
    scheduler,
    feeding,
    suspend(ms: number) {
      time.suspend(ms);
      suspended += ms;
    },
    stopScheduler() {
      stuck = true;
    },
    setHubPresent(isPresent: boolean) {
      hasHub = isPresent;
    },
    resumeScheduler() {
      stuck = false;
      scheduler.plan('anything', 0, () => undefined);
    },
    /** Blocks the event loop for this time. */
    block(ms: number) {
      time.suspend(ms);
    },
    /** The longest time between two keep-alives so far. */
    longest: () => Math.max(...[...feedTimes, now()].map((at, index) => at - (feedTimes[index - 1] ?? 0))),
  };
}

test('a working daemon sends its watchdog keep-alives three times as often as required', async () => {
  const { time, feedTimes, scheduler, longest, lines } = daemon();
  const again = () => scheduler.plan('again', time.uptime + 700, again);
  again();
  await time.pass(3_600_000);
  expect(feedTimes).toHaveLength(121);
  expect(longest()).toBe(30_000);
  expect(lines).toEqual([]);
});

test('a suspended machine does not stop the watchdog keep-alives, whatever has become due meanwhile', async () => {
  // The watchdog's checks are more frequent than the scheduler's of the boot clock.
  const hub = daemon(30_000);
  hub.scheduler.plan('a refresh', hub.time.uptime + 100_000, () => undefined);
  for (let night = 0; night < 20; night++) {
    await hub.time.pass(10_000);
    hub.suspend(8 * 3_600_000);
    hub.scheduler.plan(`a refresh of night ${night}`, hub.time.uptime + 100_000, () => undefined);
  }
  await hub.time.pass(300_000);
  expect(hub.longest()).toBe(10_000);
  expect(hub.lines).toEqual([]);
});

test('a stuck scheduler stops the watchdog keep-alives, and the log says why once; they continue when it recovers', async () => {
  const hub = daemon();
  hub.stopScheduler();
  hub.scheduler.plan('a refresh', hub.time.uptime + 10_000, () => undefined);
  await hub.time.pass(600_000);
  const last = hub.feedTimes.at(-1) ?? 0;
  expect(last).toBeGreaterThanOrEqual(10_000 + 60_000);
  expect(last).toBeLessThanOrEqual(10_000 + 60_000 + 30_000 + 60_000);
  expect(hub.lines).toEqual([
    expect.objectContaining({
      level: 'error',
      event: 'watchdog_starved',
      reason: expect.stringMatching(/^the scheduler is 1\d\d s overdue$/),
    }),
  ]);
  const feedsBefore = hub.feedTimes.length;
  hub.resumeScheduler();
  await hub.time.pass(90_000);
  expect(hub.feedTimes.length).toBeGreaterThan(feedsBefore);
  expect(hub.lines.at(-1)).toMatchObject({ level: 'info', event: 'watchdog_recovered' });
});

test('watchdog keep-alives stop if the next hub does not start, but not if it only takes long', async () => {
  const hub = daemon();
  hub.setHubPresent(false);
  await hub.time.pass(280_000);
  hub.setHubPresent(true);
  await hub.time.pass(60_000);
  expect(hub.longest()).toBe(30_000);
  hub.setHubPresent(false);
  await hub.time.pass(600_000);
  const last = hub.feedTimes.at(-1) ?? 0;
  expect(last).toBeGreaterThanOrEqual(340_000 + 270_000);
  expect(last).toBeLessThanOrEqual(340_000 + 330_000);
  expect(hub.lines).toMatchObject([
    {
      level: 'error',
      event: 'watchdog_starved',
      reason: expect.stringMatching(/^no hub has been running for 3\d\d s$/),
    },
  ]);
});

test('the daemon logs that its event loop was blocked', async () => {
  const hub = daemon();
  await hub.time.pass(45_000);
  hub.block(50_000);
  await hub.time.pass(60_000);
  expect(hub.lines).toMatchObject([{ level: 'warn', event: 'event_loop_blocked', seconds: 50 }]);
});

test('without a watchdog no timer runs, and none after the keep-alives have ended', async () => {
  expect(daemon(null).time.armed).toBe(0);
  const hub = daemon();
  hub.feeding[Symbol.dispose]();
  await hub.time.pass(300_000);
  expect(hub.feedTimes).toEqual([0]);
});

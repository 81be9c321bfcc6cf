import { expect, test } from 'vitest';
import { watchClock } from '../../src/broker/time/clock-watch.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import type { LogFields } from '../../src/core/log.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';

function start() {
  const time = new FakeTime();
  const events: { event: string; fields: LogFields }[] = [];
  const log = (event: string, fields: LogFields = {}) => events.push({ event, fields });
  const environment = { clock: time, timers: time, log: logTo(log) };
  const calls = { set: 0, synchronized: 0, checks: 0, checksAfterSet: 0, ntp: false };
  const watch = watchClock({
    environment,
    async isSynchronized(_now, wasSet) {
      calls.checks += 1;
      if (wasSet) calls.checksAfterSet += 1;
      return calls.ntp;
    },
    onSet: () => {
      calls.set += 1;
    },
    onSynchronized: () => {
      calls.synchronized += 1;
    },
  });
  return { time, events, environment, calls, watch };
}

test('the clock watch reports each setting of the clock once, within 5 s, and logs the step', async () => {
  const { time, events, calls } = start();
  await time.pass(60_000);
  expect(calls.set).toBe(0);
  time.wall += 10_000_000;
  await time.pass(5000);
  expect(calls.set).toBe(1);
  expect(events).toMatchObject([{ event: 'clock_set', fields: { step: 10_000 } }]);
  await time.pass(60_000);
  expect(calls.set).toBe(1);
  time.wall -= 20_000_000;
  await time.pass(5000);
  expect(calls).toMatchObject({ set: 2, checksAfterSet: 2 });
});

test('the clock watch does not take suspended time or clock drift for a setting of the clock', async () => {
  const { time, calls } = start();
  time.suspend(5 * 3_600_000);
  for (let i = 0; i < 100; i += 1) {
    time.wall += 100;
    await time.pass(5000);
  }
  expect(calls.set).toBe(0);
});

test('the clock watch asks for NTP synchronization until it is confirmed, and reports it once', async () => {
  const { time, calls, watch } = start();
  await time.pass(20_000);
  expect(calls.synchronized).toBe(0);
  calls.ntp = true;
  await time.pass(20_000);
  expect(calls).toMatchObject({ synchronized: 1, checks: 6 });
  watch[Symbol.dispose]();
  expect(time.armed).toBe(0);
});

test("the first source that confirms the clock is logged, and NTP's time takes precedence over any portal's", () => {
  const { time, events, environment } = start();
  const clock = new ReferenceClock(environment);
  let confirmations = 0;
  clock.whenConfirmed(() => {
    confirmations += 1;
  });
  clock.recordPortalTime('home', null);
  expect(clock.confirmed).toBeNull();
  clock.recordPortalTime('home', time.wall - 7000);
  clock.recordPortalTime('home', time.wall - 7000);
  expect([clock.confirmed, clock.confirmedBy('home'), clock.confirmedBy('other')]).toEqual([
    { wall: time.wall - 7000, at: time.now() },
    { wall: time.wall - 7000, at: time.now() },
    null,
  ]);
  expect(confirmations).toBe(1);
  clock.recordNtpTime();
  const sources = [clock.confirmed, clock.confirmedBy('home'), clock.confirmedBy('other')];
  expect(sources).toEqual(Array(3).fill({ wall: time.wall, at: time.now() }));
  expect(clock.readings.map(({ wall }) => wall)).toEqual([time.wall, time.wall - 7000]);
  expect(confirmations).toBe(2);
  const confirmed = { source: 'portal', true_time: '2031-05-05T06:07:01Z', hub_clock_ahead: 7 };
  expect(events).toEqual([{ event: 'clock_confirmed', fields: confirmed }]);
});

test("the reference clock keeps two readings while the portal's time disagrees with the previous one", async () => {
  const { time, environment } = start();
  const clock = new ReferenceClock(environment);
  const clockOffsets = () => clock.readings.map(({ wall, at }) => wall - at.wall);
  clock.recordPortalTime('home', time.wall);
  await time.pass(60_000);
  clock.recordPortalTime('home', time.wall - 900);
  expect(clockOffsets()).toEqual([-900]);
  await time.pass(60_000);
  clock.recordPortalTime('home', time.wall + 150_000);
  expect(clockOffsets()).toEqual([150_000, -900]);
  await time.pass(60_000);
  clock.recordPortalTime('home', time.wall);
  expect(clockOffsets()).toEqual([0, 150_000]);
  await time.pass(60_000);
  clock.recordPortalTime('home', time.wall);
  expect(clockOffsets()).toEqual([0]);
});

test('without NTP the clock of the hub goes by the portal in the middle, so that one with a wrong clock does not matter', () => {
  const { time, environment } = start();
  const first = new ReferenceClock(environment);
  const clockOffset = (clock: ReferenceClock) => (clock.confirmed?.wall ?? 0) - time.wall;
  for (const [portal, off] of Object.entries({ broken: -365 * 86_400_000, home: 0, fast: 1_800_000 })) {
    first.recordPortalTime(portal, time.wall + off);
  }
  expect(clockOffset(first)).toBe(0);
  first.recordPortalTime('fast', time.wall + 1000);
  // The hub that replaces it knows the same, also of each portal.
  const next = new ReferenceClock(environment, first);
  expect(clockOffset(next)).toBe(0);
  expect(next.timeAt('fast', { ...time.now(), uptime: time.uptime - 500 })).toBe(time.wall + 500);
  expect(next.readings).toEqual(first.readings);
});

test("the reference clock warns of a hub clock that is hours off the portal's time", () => {
  const { time, events, environment } = start();
  new ReferenceClock(environment).recordPortalTime('home', time.wall + 3 * 3_600_000);
  expect(events.map(({ event }) => event)).toEqual(['clock_confirmed', 'clock_wrong']);
  expect(events[1]?.fields).toEqual({ hub_clock_ahead: -10_800 });
});

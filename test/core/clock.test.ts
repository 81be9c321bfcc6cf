import { expect, test } from 'vitest';
import { confirmedTimeAt, rfc3339, rfc3339Day, timesAt, utcDay, wallOffset } from '../../src/core/clock.ts';
import { HOUR, instantAt, MINUTE } from './samples.ts';

const reading = { at: instantAt(MINUTE), wall: Date.UTC(2031, 0, 1) };

test('a reading of the true time counts on with the boot clock, and only in its own boot', () => {
  expect(confirmedTimeAt(reading, { ...instantAt(HOUR), wall: 0 })).toBe(Date.UTC(2031, 0, 1) + HOUR - MINUTE);
  expect(confirmedTimeAt(reading, instantAt(HOUR, 'boot-2'))).toBeNull();
  expect(confirmedTimeAt(null, instantAt(HOUR))).toBeNull();
  const earlier = { at: instantAt(0, 'boot-0'), wall: 0 };
  expect(timesAt([earlier, reading], instantAt(MINUTE + 1))).toEqual([Date.UTC(2031, 0, 1) + 1]);
});

test("the wall clock's offset from the boot clock is that of the confirmed time, or else of the hub's clock", () => {
  expect(wallOffset(reading, instantAt(HOUR))).toBe(Date.UTC(2031, 0, 1) - MINUTE);
  expect(wallOffset(null, { boot: 'boot-1', uptime: 5, wall: 1005 })).toBe(1000);
});

test('a time is written in whole seconds of UTC, and a day as its date or its number since 1970', () => {
  expect(rfc3339(Date.UTC(2026, 10, 22, 7, 14, 5, 999))).toBe('2026-11-22T07:14:05Z');
  // A stored time may be anything.
  expect([rfc3339(1e300), rfc3339(-1e300)]).toEqual(['+275760-09-13T00:00:00Z', '-271821-04-20T00:00:00Z']);
  expect(rfc3339Day(Date.UTC(2026, 10, 22, 23, 59, 59, 999))).toBe('2026-11-22');
  expect([utcDay(0), utcDay(24 * HOUR - 1), utcDay(24 * HOUR), utcDay(-1)]).toEqual([0, 0, 1, -1]);
});

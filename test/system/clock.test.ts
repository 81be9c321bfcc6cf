import { expect, test } from 'vitest';
import { systemClock } from '../../src/system/clock.ts';

/** A machine whose clocks a test moves. It reports its uptime in hundredths of a second, rounded down. */
class Machine {
  readings = 0;
  #uptime = 50_003;
  #wall = 1_800_000_000_000;
  #timers = 7;
  readonly clock = systemClock('one', {
    uptime: () => {
      this.readings += 1;
      return Math.floor(this.#uptime / 10) * 10;
    },
    wall: () => Math.floor(this.#wall),
    monotonic: () => this.#timers,
  });

  runs(ms: number): void {
    this.sleeps(ms);
    this.#timers += ms;
  }

  sleeps(ms: number): void {
    this.#uptime += ms;
    this.#wall += ms;
  }

  clockSet(ms: number): void {
    this.#wall += ms;
  }

  /** The clock's difference from the real uptime, in ms. */
  get error(): number {
    return this.clock.now().uptime - this.#uptime;
  }
}

test('the system clock reads the boot clock at most once a second, however often the time is asked for', () => {
  const machine = new Machine();
  for (let i = 0; i < 1000; i += 1) machine.clock.now();
  expect(machine.readings).toBe(1);
  for (let i = 0; i < 10_000; i += 1) {
    machine.runs(1);
    machine.clock.now();
  }
  expect(machine.readings).toBe(11);
});

test('the system clock counts suspended time at once', () => {
  const machine = new Machine();
  const before = machine.clock.now().uptime;
  machine.sleeps(8 * 3_600_000);
  expect(machine.clock.now().uptime - before).toBeGreaterThanOrEqual(8 * 3_600_000 - 10);
  machine.runs(3);
  for (let i = 0; i < 50; i += 1) machine.sleeps(7);
  expect(Math.abs(machine.error)).toBeLessThanOrEqual(20);
});

test('setting the wall clock does not move the boot clock, even if the machine then sleeps for as long', () => {
  const machine = new Machine();
  const { wall } = machine.clock.now();
  machine.clockSet(-86_400_000);
  expect(machine.clock.now().wall).toBe(wall - 86_400_000);
  expect(Math.abs(machine.error)).toBeLessThanOrEqual(10);
  machine.clockSet(-5000);
  machine.sleeps(5000);
  machine.runs(1000);
  expect(Math.abs(machine.error)).toBeLessThanOrEqual(10);
});

test("the boot clock never goes back, although the machine's uptime is rounded down", () => {
  const machine = new Machine();
  let last = 0;
  for (let i = 0; i < 5000; i += 1) {
    machine.runs((i * 7) % 13);
    if (i % 40 === 0) machine.clockSet(i % 3 === 0 ? 900 : -900);
    const { uptime } = machine.clock.now();
    expect(uptime).toBeGreaterThanOrEqual(last);
    last = uptime;
  }
  expect(Math.abs(machine.error)).toBeLessThanOrEqual(10);
});

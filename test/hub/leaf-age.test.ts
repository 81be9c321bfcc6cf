import { expect, test } from 'vitest';
import { Scheduler } from '../../src/broker/scheduler.ts';
import type { ConfirmedTime } from '../../src/core/clock.ts';
import { watchLeafAge } from '../../src/hub/leaf-age.ts';
import { FakeTime } from '../support/fake-time.ts';

const DAY = 86_400_000;
const YEAR = 365 * DAY;

test('a leaf is issued anew in its last year, by the true time and not by the clock of the hub', async () => {
  const time = new FakeTime();
  let confirmed: ConfirmedTime | null = null;
  let notAfter = time.wall + 2 * YEAR;
  let renewals = 0;
  watchLeafAge({
    scheduler: new Scheduler({ clock: time, timers: time }),
    clock: time,
    confirmed: () => confirmed,
    notAfter: () => notAfter,
    async renew() {
      renewals += 1;
      notAfter += 10 * YEAR;
    },
  });
  time.wall += 50 * YEAR;
  await time.pass(DAY);
  expect(renewals).toBe(0);

  confirmed = { wall: notAfter - YEAR - DAY, at: time.now() };
  await time.pass(DAY - 1);
  expect(renewals).toBe(0);
  await time.pass(2 * 3_600_000);
  expect(renewals).toBe(1);
  await time.pass(30 * DAY);
  expect(renewals).toBe(1);
});

import { expect, test } from 'vitest';
import { PortalTimeProbe, ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';
import { BrokerHarness } from './broker-harness.ts';

type Answer = () => Promise<number | null>;

function start(...answers: Answer[]) {
  const time = new FakeTime();
  const log = logTo(() => undefined);
  const portalClock = new ReferenceClock({ clock: time, log });
  const asked = answers.map(() => 0);
  const portals = answers.map((answer, index) => ({
    fetchTime: () => {
      asked[index] = (asked[index] ?? 0) + 1;
      return answer();
    },
  }));
  const inquiry = new PortalTimeProbe({ clock: time, timers: time }, portalClock, () => portals);
  return { time, portalClock, asked, inquiry };
}

const nothing: Answer = async () => null;
const never: Answer = () => new Promise(() => undefined);

test('simultaneous requests for the true time share one request to the portal', async () => {
  const { portalClock, asked, inquiry } = start(async () => 1_900_000_000_000);
  await Promise.all([inquiry.confirm(), inquiry.confirm(), inquiry.confirm()]);
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
  await inquiry.confirm();
  expect(asked).toEqual([1]);
});

test('the portal time probe sends nothing while the time is confirmed', async () => {
  const { portalClock, asked, inquiry } = start(nothing);
  portalClock.recordNtpTime();
  await inquiry.confirm();
  expect(asked).toEqual([0]);
});

test('a portal that does not give the time is asked again after 30 s at the earliest', async () => {
  const { time, asked, inquiry } = start(nothing, () => Promise.reject(new Error('broken')));
  for (let passed = 0; passed < 60_000; passed += 1000) {
    await inquiry.confirm();
    time.skip(1000);
  }
  expect(asked).toEqual([2, 2]);
});

test('the time of one portal confirms the clock, even if the others do not respond', async () => {
  const { portalClock, inquiry } = start(nothing, never, async () => 1_900_000_000_000);
  await inquiry.confirm();
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
});

test('the portal time probe waits at most 5 s, and a later response serves the next caller', async () => {
  const late = Promise.withResolvers<number>();
  const { time, portalClock, asked, inquiry } = start(() => late.promise);
  let waited = false;
  const waiting = inquiry.confirm().then(() => {
    waited = true;
  });
  await time.pass(4900);
  expect(waited).toBe(false);
  await time.pass(100);
  await waiting;
  late.resolve(1_900_000_000_000);
  await inquiry.confirm();
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
  expect(asked).toEqual([1]);
});

test('the portal time probe returns at once if no portal is configured', async () => {
  const { portalClock, inquiry } = start();
  await inquiry.confirm();
  expect(portalClock.confirmed).toBeNull();
});

test('the first request of a pairing confirms the clock, before anybody has logged in', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  await home.beginPairing('wallbox');
  expect(home.events.filter(({ event }) => event === 'clock_confirmed')).toHaveLength(1);
});

test("a poll of a pairing that was open at the hub's start confirms the clock", async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  await home.beginPairing('wallbox');
  await home.stop();
  home.events.length = 0;
  await home.start();
  await home.time.pass(20_000);
  expect(home.portal.requests('config')).toHaveLength(1);
  expect(home.events.filter(({ event }) => event === 'clock_confirmed')).toHaveLength(1);
});

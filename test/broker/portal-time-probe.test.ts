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

test('whoever needs the time has it asked for, once for all who come at the same time', async () => {
  const { portalClock, asked, inquiry } = start(async () => 1_900_000_000_000);
  await Promise.all([inquiry.confirm(), inquiry.confirm(), inquiry.confirm()]);
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
  await inquiry.confirm();
  expect(asked).toEqual([1]);
});

test('where the time is known nobody is asked', async () => {
  const { portalClock, asked, inquiry } = start(nothing);
  portalClock.recordNtpTime();
  await inquiry.confirm();
  expect(asked).toEqual([0]);
});

test('a portal that does not tell is asked again after half a minute, and not before', async () => {
  const { time, asked, inquiry } = start(nothing, () => Promise.reject(new Error('broken')));
  for (let passed = 0; passed < 60_000; passed += 1000) {
    await inquiry.confirm();
    time.skip(1000);
  }
  expect(asked).toEqual([2, 2]);
});

test('one portal that tells is enough', async () => {
  const { portalClock, inquiry } = start(nothing, never, async () => 1_900_000_000_000);
  await inquiry.confirm();
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
});

test('nobody waits longer than five seconds, and an answer that comes later serves the next', async () => {
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

test('without any portal nobody waits', async () => {
  const { portalClock, inquiry } = start();
  await inquiry.confirm();
  expect(portalClock.confirmed).toBeNull();
});

test('a pairing that begins tells the time, long before anybody has logged in', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('wallbox');
  await home.beginPairing('wallbox');
  expect(home.events.filter(({ event }) => event === 'clock_confirmed')).toHaveLength(1);
});

test('so does a poll of a pairing that the hub found at its start', async () => {
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

import { expect, test } from 'vitest';
import type { ConnectedPortal } from '../../src/broker/ports.ts';
import { PortalTimeProbe, ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import { FakeTime } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';
import { BrokerHarness } from './broker-harness.ts';

type FetchTime = () => Promise<number | null>;

function start(...fetchers: FetchTime[]) {
  const time = new FakeTime();
  const log = logTo(() => undefined);
  const portalClock = new ReferenceClock({ clock: time, log });
  const requestCounts = fetchers.map(() => 0);
  const portals = fetchers.map((fetcher, index) => ({
    fetchTime: () => {
      requestCounts[index] = (requestCounts[index] ?? 0) + 1;
      return fetcher();
    },
  }));
  const names = portals.map((_, index) => `portal-${index}`);
  const get = (name: string) => ({ portal: portals[names.indexOf(name)] }) as unknown as ConnectedPortal;
  const probe = new PortalTimeProbe({ clock: time, timers: time }, portalClock, { names, get });
  return { time, portalClock, requestCounts, probe };
}

const noTime: FetchTime = async () => null;
const never: FetchTime = () => new Promise(() => undefined);

test('simultaneous requests for the true time share one request to the portal', async () => {
  const { portalClock, requestCounts, probe } = start(async () => 1_900_000_000_000);
  await Promise.all([probe.confirm(), probe.confirm(), probe.confirm()]);
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
  await probe.confirm();
  expect(requestCounts).toEqual([1]);
});

test('a portal that does not give the time is asked again after 30 s at the earliest', async () => {
  const { time, requestCounts, probe } = start(noTime, () => Promise.reject(new Error('broken')));
  for (let passed = 0; passed < 60_000; passed += 1000) {
    await probe.confirm();
    time.skip(1000);
  }
  expect(requestCounts).toEqual([2, 2]);
});

test('the time of one portal confirms the clock, even if the others do not respond', async () => {
  const { portalClock, probe } = start(noTime, never, async () => 1_900_000_000_000);
  await probe.confirm();
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
});

test("the age of a portal's tokens is asked from this portal alone, whatever the others have said", async () => {
  const { portalClock, requestCounts, probe } = start(
    async () => 1_900_000_000_000,
    async () => 1_900_001_800_000,
  );
  await probe.confirm('portal-0');
  await probe.confirm('portal-1');
  await Promise.all([probe.confirm(), probe.confirm('portal-0'), probe.confirm('portal-1')]);
  expect(requestCounts).toEqual([1, 1]);
  expect([0, 1].map((index) => portalClock.confirmedBy(`portal-${index}`)?.wall)).toEqual([
    1_900_000_000_000, 1_900_001_800_000,
  ]);
});

test.each([
  ['at most 5 s', 9500, 5000],
  ["no longer than the caller's deadline", 2000, 2000],
])('the portal time probe waits %s, and a later response serves the next caller', async (_, left, expected) => {
  const late = Promise.withResolvers<number>();
  const { time, portalClock, requestCounts, probe } = start(() => late.promise);
  let waited = false;
  const waiting = probe.confirm(undefined, time.uptime + left).then(() => {
    waited = true;
  });
  await time.pass(expected - 100);
  expect(waited).toBe(false);
  await time.pass(100);
  await waiting;
  late.resolve(1_900_000_000_000);
  await probe.confirm();
  expect(portalClock.confirmed?.wall).toBe(1_900_000_000_000);
  expect(requestCounts).toEqual([1]);
});

test('the first request of a pairing confirms the clock, before anybody has logged in', async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  await harness.beginPairing('wallbox');
  expect(harness.events.filter(({ event }) => event === 'clock_confirmed')).toHaveLength(1);
});

test('after a boot without NTP the hub asks each portal once for the time that the age of its tokens depends on', async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.reboot();
  expect(harness.statusOf('wallbox')).toMatchObject({ state: 'retrying', problem: { code: 'clock_unknown' } });
  await harness.time.pass(31_000);
  expect(harness.statusOf('wallbox')).toMatchObject({ state: 'active', problem: null });
  const asked = harness.portal.requests('config').length;
  await harness.time.pass(60_000);
  expect(harness.portal.requests('config')).toHaveLength(asked);
});

test("a poll of a pairing that was open at the hub's start confirms the clock", async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  await harness.beginPairing('wallbox');
  await harness.stop();
  harness.events.length = 0;
  await harness.start();
  await harness.time.pass(20_000);
  expect(harness.portal.requests('config')).toHaveLength(1);
  expect(harness.events.filter(({ event }) => event === 'clock_confirmed')).toHaveLength(1);
});

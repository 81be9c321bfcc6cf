import { afterEach, expect, test } from 'vitest';
import { watchClock } from '../../src/broker/time/clock-watch.ts';
import { StoreMaintenance } from '../../src/hub/store-maintenance.ts';
import { AddressChangeHandler } from '../../src/mdns/networks/address-change-handler.ts';
import { BrokerHarness, type BrokerHarnessOptions } from '../broker/broker-harness.ts';
import type { Fault } from '../support/faulty-portal.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NAMES = ['wallbox', 'heat-pump', 'inverter', 'battery', 'boiler'];

const running: AsyncDisposableStack[] = [];

afterEach(async () => {
  await running.pop()?.disposeAsync();
});

/**
 * Five appliances that request tokens every two minutes in virtual time, at a hub that maintains its store, monitors
 * its clock, and gets a status request every few minutes.
 */
async function household(options: BrokerHarnessOptions = {}) {
  const stack = new AsyncDisposableStack();
  running.push(stack);
  const home = stack.use(await BrokerHarness.start(options));
  const { time } = home;
  const ids: string[] = [];
  for (const name of NAMES) {
    ids.push(await home.addPairedAppliance(name));
    await time.pass(7 * MINUTE);
  }
  const { environment } = home;
  const lan = { address: '192.168.1.7' };
  const follower = new AddressChangeHandler({
    address: () => lan.address,
    handlers: [() => home.run.pairings.onAddressChanged(), () => home.run.grants.onNetworkChanged()],
    log: environment.log,
  });
  const housekeeping = stack.use(new StoreMaintenance(home.run.store, environment));
  housekeeping.start();
  stack.use(
    watchClock({
      environment,
      isSynchronized: async () => true,
      onSet: () => undefined,
      onSynchronized: () => undefined,
    }),
  );
  const every = (interval: number, first: number, run: () => void) => {
    time.after(first, () => {
      run();
      every(interval, interval, run);
    });
  };
  for (const [index, id] of ids.entries()) {
    every(2 * MINUTE, index * 20 * SECOND, () => void home.run.tokenIssuer.issue(id, null));
  }
  // The nightly snapshot is requested here, because its schedule uses the machine's real clock.
  every(DAY, 5 * HOUR, () => housekeeping.requestSnapshot());
  every(10 * MINUTE, MINUTE, () => {
    for (const { name } of home.run.appliances.list()) home.statusOf(name);
  });
  await time.pass(2 * HOUR);
  return {
    home,
    ids,
    moveTo(address: string) {
      lan.address = address;
      follower.notify();
    },
    /** Advances the time by `ms`. @returns the events in that time, before the log's rate limit */
    async pass(ms: number) {
      const before = home.events.length;
      await time.pass(ms);
      return home.events.slice(before).filter(({ level }) => level !== 'debug');
    },
  };
}

/** The number of lines of each event. */
function countEvents(lines: readonly { readonly event: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { event } of lines) counts[event] = (counts[event] ?? 0) + 1;
  return counts;
}

/** The events of every day. */
const DAILY = { snapshot_written: 1, daily_summary: 1 };

const PASSED: Fault = { kind: 'alter', with: (answer) => answer };

/** Makes every request (or every second one) fail for more than a day. */
function fail(home: BrokerHarness, fault: Fault, everyOther = false): void {
  const faults = Array<Fault>(5000).fill(fault);
  home.portal.fail('token', ...(everyOther ? faults.flatMap((one) => [one, PASSED]) : faults));
}

test('the log of a day without faults has a handful of lines, including one daily summary', async () => {
  const { home, pass, moveTo } = await household();
  home.journal.length = 0;
  const before = home.refreshes;
  const lines = await pass(12 * HOUR);
  moveTo('192.168.1.8');
  lines.push(...(await pass(12 * HOUR)));
  expect(home.refreshes - before).toBeGreaterThan(130);
  expect(countEvents(lines)).toEqual({ ...DAILY, address_changed: 1 });
  expect(lines.find(({ event }) => event === 'daily_summary')).toMatchObject({
    fields: { connections: 5, refreshed: expect.any(Number), failed: 0 },
  });
  expect(home.journal.map((line) => JSON.parse(line).event)).toEqual(lines.map(({ event }) => event));
});

test('the log has the first refresh of each appliance after a start', async () => {
  const { home, pass } = await household();
  await home.stop();
  await home.start();
  await home.time.settle();
  expect(countEvents(await pass(2 * HOUR))).toMatchObject({ token_refreshed: 5 });
});

test('a portal outage of 16 hours is logged for all appliances together, ever more rarely, and once when it ends', async () => {
  const { home, pass } = await household();
  const tries = home.refreshAttempts;
  await home.portal.disconnect();
  const lines = (await pass(16 * HOUR)).filter(({ event }) => !(event in DAILY));
  expect(home.refreshAttempts - tries).toBeGreaterThan(700);
  // Logged at once, and after 1, 3, 7 and 15 hours.
  expect(countEvents(lines)).toEqual({ refresh_failed: 5 });
  const [first, second] = lines;
  expect(first?.fields).toMatchObject({
    portal: 'home',
    problem: 'portal_unreachable',
    message: expect.stringContaining('connect ECONNREFUSED 127.0.0.1'),
  });
  expect(first?.fields).not.toHaveProperty('tries');
  expect(second?.fields).toMatchObject({ connections: 5, tries: expect.any(Number), duration: expect.any(Number) });
  await home.portal.reconnect();
  const after = await pass(2 * HOUR);
  expect(countEvents(after)).toEqual({ portal_available: 1 });
  expect(after[0]?.fields).toMatchObject({ portal: 'home', problem: 'portal_unreachable', connections: 5 });
});

test.each([
  ['answers 503 every other time', { kind: 'answer', status: 503 }],
  ['drops every other response', { kind: 'commit then drop' }],
] as const)('a portal that %s for hours does not cause a log line for each attempt', async (_, fault) => {
  const { home, pass } = await household({ emulator: { refreshGrace: 100 } });
  fail(home, fault, true);
  expect((await pass(6 * HOUR)).length).toBeLessThan(60);
  expect(home.refreshAttempts).toBeGreaterThan(70);
});

test.each<[string, number, (home: BrokerHarness) => void]>([
  [
    "rejects the hub's client credentials",
    5,
    (home) => fail(home, { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' }),
  ],
  ['rejects everything', 10, (home) => fail(home, { kind: 'answer', status: 403 })],
  ['refuses the grants', 5, (home) => fail(home, { kind: 'answer', status: 400, body: '{"error":"invalid_grant"}' })],
])('a portal that %s causes at most %i log lines, not one for each attempt', async (_, most, begin) => {
  const { home, pass } = await household();
  begin(home);
  const before = home.refreshAttempts;
  const lines = (await pass(3 * HOUR)).filter(({ event }) => !(event in DAILY));
  expect(lines.length).toBeLessThanOrEqual(most);
  expect(lines.length).toBeGreaterThan(0);
  expect(home.refreshAttempts - before).toBeGreaterThanOrEqual(most);
});

test('a portal that drops every connection for hours causes a few log lines for each appliance', async () => {
  const { home, pass } = await household({ emulator: { refreshGrace: 100 } });
  fail(home, { kind: 'drop' });
  const before = home.refreshAttempts;
  const lines = countEvents(await pass(3 * HOUR));
  expect(home.refreshAttempts - before).toBeGreaterThan(50);
  expect(lines['answer_lost']).toBe(5);
  expect(lines['refresh_failed']).toBeLessThanOrEqual(2 * 5);
});

test('a disk that is full for hours is logged rarely, and once when it is writable again', async () => {
  const { home, pass } = await household();
  for (const write of ['beginAttempt', 'endAttempt', 'replaceGrant'] as const) home.failingWrites.add(write);
  const lines = await pass(6 * HOUR);
  expect(countEvents(lines)['refresh_failed']).toBe(3);
  expect(lines[0]?.fields).toMatchObject({
    problem: 'store_unwritable',
    message: expect.stringContaining('disk is full'),
  });
  home.failingWrites.clear();
  // The snapshot is written to a real disk, for which virtual time does not wait: on a busy machine it may end in this
  // hour.
  const after = (await pass(HOUR)).filter(({ event }) => event !== 'snapshot_written');
  expect(countEvents(after)).toEqual({ store_writable: 1 });
});

test('a device flow that nobody opens and that its appliance keeps repeating is logged rarely', async () => {
  const { home, pass } = await household();
  const { appliance } = await home.addAppliance('shy');
  const { deviceFlows } = home.run;
  let begun = 0;
  const begin = () => {
    void deviceFlows.begin(appliance, null).then(({ kind }) => {
      if (kind === 'begun') begun += 1;
    });
    home.time.after(15 * MINUTE + SECOND, begin);
  };
  begin();
  const lines = (await pass(6 * HOUR)).filter(({ event }) => !(event in DAILY));
  expect(begun).toBeGreaterThan(20);
  expect(countEvents(lines)).toEqual({ pairing_started: 3 });
});

test('an appliance that rejects every token it gets is logged rarely', async () => {
  const { home, ids, pass } = await household();
  const [id = ''] = ids;
  const refuse = async () => {
    await home.run.grants.reportRejectedToken(id, await home.token(id));
    home.time.after(2 * MINUTE, () => void refuse());
  };
  void refuse();
  const before = home.refreshes;
  expect((await pass(3 * HOUR)).length).toBeLessThan(12);
  expect(home.refreshes - before).toBeGreaterThan(60);
});

test('a portal that comes and goes during a pairing is logged at most three times', async () => {
  const { home, pass } = await household();
  await home.addAppliance('car');
  const run = await home.beginPairing('car');
  const answer = { kind: 'answer', status: 503 } as const;
  home.portal.fail(
    'code',
    ...Array<Fault>(100)
      .fill(answer)
      .flatMap((one) => [one, PASSED]),
  );
  const lines = countEvents(await pass(10 * MINUTE));
  expect(lines['portal_unreachable']).toBeLessThanOrEqual(3);
  await home.login(run);
  expect(countEvents(await pass(MINUTE))).toMatchObject({ connection_paired: 1 });
});

import { expect, test } from 'vitest';
import { connectionStatus } from '../../src/broker/status/connection-status.ts';
import { collectNoticeInput } from '../../src/broker/status/notice-input.ts';
import { isOfAppliance } from '../../src/core/health/condition.ts';
import { openHubProblems } from '../../src/hub/hub-problems.ts';
import { SlowStoreMonitor } from '../../src/hub/slow-store-monitor.ts';
import { HOUR, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';

const WRONG_CLIENT = { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' } as const;

/** The health of the hub and its appliances, as `status` derives it. */
async function healthOf(harness: BrokerHarness) {
  const { run } = harness;
  const { connections, appliances, grants, store, notices } = run;
  const logins = connections.list().map((one) => [one, connectionStatus(one, run, String)] as const);
  const statuses = appliances.list().map(({ name }) => harness.statusOf(name));
  const findProblems = openHubProblems({
    clock: harness.environment.clock,
    store,
    local: { volatileReason: null, store: { commitTimes: harness.commitTimes } },
    startedAt: '2031-05-05T06:07:08Z',
    leaf: { expiryProblem: null },
    advertiser: { idConflict: null, nameConflict: null, announcementProblem: null },
    portals: { moved: null, names: harness.configured ? ['home'] : [] },
    portalClients: { rejected: [] },
    nameOf: (id) => appliances.byId(id)?.name ?? id,
    isUnsaved: (id) => grants.get(id)?.isUnsaved === true,
  });
  const problems = findProblems(logins);
  const input = await collectNoticeInput(logins, statuses, problems, run, 'https://10.0.0.1:8443/');
  // No appliance asks here.
  const conditions = input.conditions
    .filter((one) => !isOfAppliance(one))
    .map(({ code, severity, appliance }) => `${severity} ${code} ${appliance ?? 'hub'}`);
  return { conditions, problems, notices: notices.activeNotices(input), input };
}

const codes = async (harness: BrokerHarness) => (await healthOf(harness)).conditions.toSorted();

/** A broker with two appliances whose portal now rejects the hub's secret; the notices have been raised. */
async function withWrongSecret() {
  const { harness } = await BrokerHarness.startPaired();
  await harness.addPairedAppliance('heater');
  harness.portal.fail('token', ...Array(100).fill(WRONG_CLIENT));
  harness.run.notices.start(
    async () => (await healthOf(harness)).input,
    () => undefined,
  );
  await harness.untilRefreshed();
  await harness.time.pass(2 * MINUTE);
  return harness;
}

test('a restart with a corrected client secret tries it at once and ends the misconfigured notices', async () => {
  const harness = await withWrongSecret();
  expect(await codes(harness)).toEqual(['error misconfigured heater', 'error misconfigured wallbox']);
  expect((await healthOf(harness)).notices.map(({ code }) => code)).toEqual(['misconfigured', 'misconfigured']);
  await harness.stop();
  harness.portal.clearFaults('token');
  await harness.start();
  // The hub has not tried the new secret yet, so it asks no person to act.
  expect(await codes(harness)).toEqual(['warning credentials_untried heater', 'warning credentials_untried wallbox']);
  expect((await healthOf(harness)).notices).toEqual([]);
  await harness.time.pass(5 * SECOND);
  expect(await codes(harness)).toEqual([]);
  expect((await healthOf(harness)).notices).toEqual([]);
});

test('a login without its portal names it, also after a lost answer, until the portal is back', async () => {
  const { harness } = await BrokerHarness.startPaired();
  harness.portal.fail('token', { kind: 'commit then drop' });
  await harness.untilRefreshed();
  await harness.stop();
  harness.configured = false;
  await harness.start();
  const { input } = await healthOf(harness);
  expect(input.conditions).toMatchObject([
    {
      code: 'portal_missing',
      message: `wallbox gets no new tokens: its portal home (${harness.portal.frontendUrl}) is not in the configuration`,
      what_to_do: expect.stringMatching(/^Add portals\.home to the configuration again /),
    },
  ]);
  await harness.stop();
  harness.configured = true;
  await harness.start();
  expect(await codes(harness)).not.toContain('error portal_missing wallbox');
});

test('a login whose portal was missing for a while is not said to have wrong credentials', async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.stop();
  harness.configured = false;
  await harness.start();
  await harness.time.pass(2 * HOUR);
  expect(await codes(harness)).toEqual(['error portal_missing wallbox']);
  await harness.stop();
  harness.configured = true;
  await harness.start();
  expect(await codes(harness)).not.toContain('warning credentials_untried wallbox');
});

test('a problem began when it did, also after the clock was set', async () => {
  const { harness } = await BrokerHarness.startPaired({ fraction: 0.999 });
  await harness.portal.disconnect();
  await harness.time.pass(6 * HOUR);
  const age = () => harness.time.wall - Date.parse(harness.statusOf('wallbox').problem?.since ?? '');
  const before = age();
  for (const jump of [82 * MINUTE, -400 * MINUTE]) {
    harness.time.wall += jump;
    expect(Math.abs(age() - before)).toBeLessThanOrEqual(SECOND);
  }
});

test('one response of a portal makes all appliances that could not reach it try again at once', async () => {
  const { harness } = await BrokerHarness.startPaired({ fraction: 0.999 });
  await harness.addPairedAppliance('heater');
  await harness.addAppliance('car');
  await harness.portal.disconnect();
  await harness.time.pass(6 * HOUR);
  expect(await codes(harness)).toContain('warning portal_unreachable wallbox');
  await harness.portal.reconnect();
  await harness.beginPairing('car');
  await harness.time.pass(6 * SECOND);
  expect(await codes(harness)).toEqual(['info login_open car']);
});

test('an appliance retries at most once a minute while its portal answers other requests only', async () => {
  const { harness } = await BrokerHarness.startPaired({ fraction: 0.999 });
  await harness.portal.disconnect();
  await harness.time.pass(6 * HOUR);
  const before = harness.refreshAttempts;
  for (let passed = 0; passed < HOUR; passed += 6 * SECOND) {
    harness.run.grants.onPortalAvailable('home');
    await harness.time.pass(6 * SECOND);
  }
  expect(harness.refreshAttempts - before).toBeLessThan(65);
  expect(harness.refreshAttempts - before).toBeGreaterThan(30);
  expect(harness.refreshAttempts - before).toBeGreaterThan(50);
});

test("the hub's problem names the appliances whose new tokens are in memory only", async () => {
  const { harness } = await BrokerHarness.startPaired();
  harness.failingWrites.add('grants.replace');
  await harness.untilRefreshed();
  await harness.time.pass(MINUTE);
  expect((await healthOf(harness)).problems).toMatchObject([
    {
      code: 'store_unwritable',
      message: expect.stringMatching(/^New tokens of wallbox are only in memory, and are lost if/),
    },
  ]);
  harness.failingWrites.clear();
});

test('refreshes resume within seconds, and the store_unwritable errors end, once the disk has room again', async () => {
  const { harness } = await BrokerHarness.startPaired();
  harness.failingWrites.add('grants.beginAttempt');
  await harness.time.pass(3 * HOUR);
  expect(await codes(harness)).toEqual(['error store_unwritable hub', 'error store_unwritable wallbox']);
  expect(harness.run.grants.hasStoreFailure).toBe(true);
  harness.failingWrites.clear();
  harness.run.grants.onStoreWritable();
  await harness.time.pass(6 * SECOND);
  expect(await codes(harness)).toEqual([]);
  expect(harness.run.grants.hasStoreFailure).toBe(false);
});

test('a slow SD card is a warning of the hub with a notice and log lines, until most writes are fast again', async () => {
  const { harness } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 600 } });
  const delivered: string[] = [];
  harness.run.notices.start(
    async () => (await healthOf(harness)).input,
    ({ status, notice }) => delivered.push(`${status} ${notice}`),
  );
  using _monitor = new SlowStoreMonitor(harness.commitTimes, harness.environment);
  const logged = () => harness.events.filter(({ event }) => event.startsWith('store_')).map(({ event }) => event);
  await harness.time.pass(HOUR);
  expect([await codes(harness), delivered, logged()]).toEqual([[], [], []]);

  harness.writeTimes = [1500, 4000];
  await harness.time.pass(HOUR);
  expect(await codes(harness)).toEqual(['warning store_slow hub']);
  const { problems, notices } = await healthOf(harness);
  const percentiles = /\(median (\d\.\d) s, 90th percentile (\d\.\d) s, longest (\d\.\d) s\)$/;
  const [, ...seconds] = (percentiles.exec(problems[0]?.message ?? '') ?? []).map(Number);
  expect(seconds).toEqual([...seconds].sort((a, b) => a - b));
  expect(seconds[0]).toBeGreaterThan(1);
  expect(notices).toMatchObject([
    { code: 'store_slow', severity: 'warning', what_to_do: expect.stringMatching(/backup/) },
  ]);
  expect(delivered).toEqual(['raised store_slow']);
  expect(logged()).toEqual(['store_slow']);

  harness.writeTimes = [10, 100];
  await harness.time.pass(2 * HOUR);
  expect([await codes(harness), (await healthOf(harness)).notices]).toEqual([[], []]);
  expect(delivered).toEqual(['raised store_slow', 'resolved store_slow']);
  // It is logged again after an hour.
  expect([...new Set(logged())]).toEqual(['store_slow', 'store_no_longer_slow']);
});

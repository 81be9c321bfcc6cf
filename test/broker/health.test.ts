import { expect, test } from 'vitest';
import { applianceStatus } from '../../src/broker/appliances/appliance-status.ts';
import { collectNoticeInput } from '../../src/broker/reports/notice-input.ts';
import { findHubProblems } from '../../src/hub/hub-problems.ts';
import { BrokerHarness } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const WRONG_CLIENT = { kind: 'answer', status: 401, body: '{"error":"invalid_client"}' } as const;

/** How the home stands, as `status` has it. */
function judged({ run }: BrokerHarness) {
  const { appliances, grants, store, notices } = run;
  const listed = appliances.list().map((one) => [one, applianceStatus(one, run, String)] as const);
  const problems = findHubProblems({
    store,
    nameOf: (id) => appliances.byId(id)?.name ?? id,
    startedAt: '2031-05-05T06:07:08Z',
    appliances: listed,
    isUnsaved: (id) => grants.get(id)?.isUnsaved === true,
    ...{ idTaken: null, nameClaimed: null, unannounced: null },
  });
  const facts = collectNoticeInput(listed, problems, run, 'https://10.0.0.1:8443/');
  const conditions = facts.conditions.map(
    ({ code, severity, appliance }) => `${severity} ${code} ${appliance ?? 'hub'}`,
  );
  return { conditions, problems, notices: notices.activeNotices(facts), facts };
}

const codes = (home: BrokerHarness) => judged(home).conditions.toSorted();

/** A home with two appliances, whose portal does not take the hub's secret any more; it has been told of. */
async function withWrongSecret() {
  const home = await BrokerHarness.start();
  await home.addPairedAppliance('wallbox');
  await home.addPairedAppliance('heater');
  home.portal.fail('token', ...Array(100).fill(WRONG_CLIENT));
  home.run.notices.start(
    () => judged(home).facts,
    () => undefined,
  );
  await home.untilRefreshed();
  await home.time.pass(2 * MINUTE);
  return home;
}

test('a restart with a corrected client secret tries it at once and ends the misconfigured notices', async () => {
  await using home = await withWrongSecret();
  expect(codes(home)).toEqual(['error misconfigured heater', 'error misconfigured wallbox']);
  expect(judged(home).notices.map(({ code }) => code)).toEqual(['misconfigured', 'misconfigured']);
  await home.stop();
  home.portal.clearFaults('token');
  await home.start();
  // Until they have been tried nobody knows, and nothing is asked of anybody.
  expect(codes(home)).toEqual(['warning credentials_untried heater', 'warning credentials_untried wallbox']);
  expect(judged(home).notices).toEqual([]);
  await home.time.pass(5 * SECOND);
  expect(codes(home)).toEqual([]);
  expect(judged(home).notices).toEqual([]);
});

test('the misconfigured notices keep the time when they began if the client secret is still wrong after a restart', async () => {
  await using home = await withWrongSecret();
  const before = judged(home).notices;
  await home.stop();
  await home.start();
  await home.time.pass(MINUTE);
  expect(judged(home).notices.map(({ code, since }) => [code, since])).toEqual(
    before.map(({ code, since }) => [code, since]),
  );
});

test('untried credentials are a condition after a restart, even if their failure was reported too often to repeat', async () => {
  await using home = await withWrongSecret();
  const refreshAll = async () => {
    for (const { id } of home.run.appliances.list()) await home.run.grants.refresh(id);
    await home.time.pass(MINUTE);
  };
  for (let times = 0; times < 3; times++) {
    home.portal.clearFaults('token');
    await refreshAll();
    expect(codes(home)).toEqual([]);
    home.portal.fail('token', ...Array(100).fill(WRONG_CLIENT));
    await refreshAll();
  }
  await home.stop();
  await home.start();
  expect(codes(home)).toEqual(['warning credentials_untried heater', 'warning credentials_untried wallbox']);
  await home.time.pass(5 * SECOND);
  expect(codes(home)).toEqual(['error misconfigured heater', 'error misconfigured wallbox']);
});

test('one response of a portal makes all appliances that could not reach it try again at once', async () => {
  await using home = await BrokerHarness.start({ fraction: 0.999 });
  await home.addPairedAppliance('wallbox');
  await home.addPairedAppliance('heater');
  await home.addAppliance('car');
  await home.portal.disconnect();
  await home.time.pass(6 * HOUR);
  expect(codes(home)).toContain('warning portal_unreachable wallbox');
  await home.portal.reconnect();
  await home.beginPairing('car');
  await home.time.pass(6 * SECOND);
  expect(codes(home)).toEqual(['info login_open car']);
});

test('a pairing waits for an unreachable portal, and for the login once it has a link', async () => {
  await using home = await BrokerHarness.start();
  await home.addAppliance('car');
  await home.portal.disconnect();
  await home.beginPairing('car');
  expect(codes(home)).toEqual(['info portal_awaited car']);
  await home.portal.reconnect();
  await home.time.pass(MINUTE);
  expect(codes(home)).toEqual(['info login_open car']);
});

test('an appliance retries at most once a minute while its portal answers other requests only', async () => {
  await using home = await BrokerHarness.start({ fraction: 0.999 });
  await home.addPairedAppliance('wallbox');
  await home.portal.disconnect();
  await home.time.pass(6 * HOUR);
  const before = home.refreshAttempts;
  for (let passed = 0; passed < HOUR; passed += 6 * SECOND) {
    home.run.grants.onPortalAvailable('home');
    await home.time.pass(6 * SECOND);
  }
  expect(home.refreshAttempts - before).toBeLessThan(65);
  expect(home.refreshAttempts - before).toBeGreaterThan(50);
});

test('a full disk is an error of the hub and of its appliances, and no unsaved tokens are reported without any', async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance('wallbox');
  home.failingWrites.add('beginAttempt');
  await home.time.pass(HOUR);
  expect(codes(home)).toEqual(['error store_unwritable hub', 'error store_unwritable wallbox']);
  const { problems, notices } = judged(home);
  expect(problems).toMatchObject([{ code: 'store_unwritable', message: expect.not.stringContaining('memory') }]);
  expect(notices).toMatchObject([{ code: 'store_unwritable', severity: 'error', appliance: null }]);
  home.failingWrites.clear();
  await home.time.pass(10 * MINUTE);
  expect(codes(home)).toEqual([]);
});

test("the hub's problem names the appliances whose new tokens are in memory only", async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance('wallbox');
  home.failingWrites.add('replaceGrant');
  await home.untilRefreshed();
  await home.time.pass(MINUTE);
  expect(judged(home).problems).toMatchObject([
    {
      code: 'store_unwritable',
      message: expect.stringMatching(/^New tokens of wallbox are in memory alone, and lost if/),
    },
  ]);
  home.failingWrites.clear();
});

test('refreshes resume within seconds, and the store_unwritable errors end, once the disk has room again', async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance('wallbox');
  home.failingWrites.add('beginAttempt');
  await home.time.pass(3 * HOUR);
  expect(codes(home)).toEqual(['error store_unwritable hub', 'error store_unwritable wallbox']);
  expect(home.run.grants.hasStoreFailure).toBe(true);
  home.failingWrites.clear();
  home.run.grants.onStoreWritable();
  await home.time.pass(6 * SECOND);
  expect(codes(home)).toEqual([]);
  expect(home.run.grants.hasStoreFailure).toBe(false);
});

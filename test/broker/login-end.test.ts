import { expect, test } from 'vitest';
import { connectionStatus } from '../../src/broker/status/connection-status.ts';
import { collectNoticeInput } from '../../src/broker/status/notice-input.ts';
import { isOfAppliance } from '../../src/core/health/condition.ts';
import type { NoticeReport } from '../../src/core/health/notice.ts';
import { DAY, HOUR, MINUTE } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';

const PAGE = 'https://192.168.1.7:8443/';

const loginOf = (harness: BrokerHarness, name = 'wallbox') =>
  connectionStatus(harness.connection(name), harness.run, () => '');

/** The conditions of connections: no appliance asks here. */
const conditionsOf = async (harness: BrokerHarness) =>
  (await noticeInput(harness)).conditions.filter((one) => !isOfAppliance(one));

function noticeInput(harness: BrokerHarness) {
  const { run } = harness;
  const connections = run.connections.list().map((one) => [one, loginOf(harness, one.name)] as const);
  return collectNoticeInput(connections, [harness.statusOf('wallbox')], [], run, PAGE);
}

/** The reports of all runs, with the time that had passed since the harness started. */
class Reports {
  readonly all: (NoticeReport & { readonly at: number })[] = [];
  readonly #harness: BrokerHarness;
  readonly #begin: number;

  constructor(harness: BrokerHarness) {
    this.#harness = harness;
    this.#begin = harness.time.wall;
    this.attach();
  }

  /** Collects the reports of the current run. */
  attach(): void {
    const { time, run } = this.#harness;
    run.notices.start(
      () => noticeInput(this.#harness),
      (report) => this.all.push({ ...report, at: time.wall - this.#begin }),
    );
  }
}

/** Restarts the hub's machine, which was off for `off` ms. */
async function reboot(harness: BrokerHarness, reports: Reports, off: number): Promise<void> {
  await harness.reboot(harness.time.wall + off);
  reports.attach();
}

test.each([
  ['the configuration', { grantLifetime: (5 * DAY) / 1000 }, { loginLifetime: 5 * DAY }],
  ["the portal's responses", { loginLifetime: (5 * DAY) / 1000 }, {}],
])('a login that ends in five days according to %s is reported once, in time', async (_, settings, limits) => {
  const emulator = { tokenLifetime: (6 * HOUR) / 1000, ...settings };
  const { harness } = await BrokerHarness.startPaired({ emulator, limits });
  const ends = new Date(Math.round((harness.time.wall + 5 * DAY) / MINUTE) * MINUTE).getTime();
  const reports = new Reports(harness);
  const endsIn = () => (Date.parse(loginOf(harness).loginEnds ?? '') - ends) / MINUTE;
  for (let day = 1; day <= 3; day++) {
    await harness.time.pass(DAY);
    expect(loginOf(harness).state).toBe('active');
    expect(Math.abs(endsIn())).toBeLessThanOrEqual(1);
    if (day % 2 === 0) await reboot(harness, reports, 10 * MINUTE);
    await harness.time.pass(4 * HOUR);
  }
  await reboot(harness, reports, MINUTE);
  await harness.time.pass(7 * HOUR);

  const [reminder, ...others] = reports.all;
  expect(others).toEqual([]);
  const what = { severity: 'warning', connection: 'wallbox', appliance: 'wallbox', appliances: ['wallbox'] };
  const texts = {
    message: expect.stringMatching(
      /^wallbox must be connected again before 2031-05-10T06:0\d:00Z, when its login ends$/,
    ),
    what_to_do: `Log in again before then: open ${PAGE}appliances/wallbox or run "latchkey pair wallbox"`,
  };
  expect(reminder).toMatchObject({ status: 'raised', notice: 'login_ending', ...what, ...texts });
  // A quarter of its lifetime before the end.
  expect(reminder?.at).toBeGreaterThan(3.74 * DAY);
  expect(reminder?.at).toBeLessThan(3.76 * DAY);
  expect(await conditionsOf(harness)).toMatchObject([{ code: 'login_ending', ...what, ...texts }]);
  expect(harness.run.notices.activeNotices(await noticeInput(harness))).toMatchObject([{ code: 'login_ending' }]);

  // Nobody logs in.
  await harness.time.pass(1.5 * DAY);
  expect(loginOf(harness)).toMatchObject({
    state: 'needs_pairing',
    problem: { message: expect.stringMatching(/^The login ended by itself at 2031-05-10T06:0\d:\d\dZ, as expected/) },
  });
  expect(await conditionsOf(harness)).toMatchObject([{ code: 'refused', severity: 'error' }]);
  expect(reports.all.slice(1)).toMatchObject([{ status: 'raised', notice: 'pairing_needed' }]);
});

test('a new login ends the reminder, and is reported', async () => {
  const emulator = { tokenLifetime: (6 * HOUR) / 1000 };
  const { harness } = await BrokerHarness.startPaired({ emulator, limits: { loginLifetime: 2 * DAY } });
  const reports = new Reports(harness);
  await harness.time.pass(1.1 * DAY);
  await harness.pairAgain('wallbox');
  await harness.time.pass(MINUTE);
  expect(await conditionsOf(harness)).toEqual([]);
  expect(reports.all).toMatchObject([
    { status: 'raised', notice: 'login_ending' },
    { status: 'resolved', notice: 'login_ending', message: 'The login of wallbox no longer ends soon' },
  ]);
});

test('the time at which a login ends does not change while the hub runs', async () => {
  const { harness } = await BrokerHarness.startPaired({ limits: { loginLifetime: 30 * DAY } });
  const seen = new Set<string | null>();
  for (let passed = 0; passed < 3 * HOUR; passed += 437_123) {
    await harness.time.pass(437_123);
    seen.add(loginOf(harness).loginEnds);
    // The clocks of a machine are read one after the other.
    harness.time.wall += passed % 2 === 0 ? 1 : -1;
  }
  expect(seen.size).toBe(1);
});

test('the time at which a login ends is measured by the clock of its portal, and not by that of another one', async () => {
  const { harness } = await BrokerHarness.startPaired({ limits: { loginLifetime: 30 * DAY } });
  await harness.reboot(harness.time.wall + HOUR);
  const { referenceClock } = harness.run;
  referenceClock.recordPortalTime('other', harness.time.wall + 20 * DAY);
  expect(loginOf(harness).loginEnds).toBeNull();
  referenceClock.recordPortalTime('home', harness.time.wall);
  expect(loginOf(harness).loginEnds).not.toBeNull();
});

test('an idle limit of one day is never reached in three days in which nobody asks', async () => {
  const emulator = { tokenLifetime: (60 * DAY) / 1000, refreshLifetime: DAY / 1000 };
  const { harness } = await BrokerHarness.startPaired({ emulator, limits: { idleLifetime: DAY } });
  const reports = new Reports(harness);
  // Off when a refresh was due, and just before; the clock is confirmed once, and unknown otherwise.
  for (const [runs, off] of [
    [0.7 * DAY, 0.25 * DAY],
    [0.79 * DAY, 6 * MINUTE],
    [0.6 * DAY, 0.1 * DAY],
    [0.6 * DAY, 0],
  ] as const) {
    await harness.time.pass(runs);
    await reboot(harness, reports, off);
    if (off > 0.2 * DAY) harness.run.referenceClock.recordNtpTime();
    expect(loginOf(harness).state).toMatch(/active|retrying/);
  }
  await harness.time.pass(0.3 * DAY);
  expect(loginOf(harness)).toMatchObject({ state: 'active', problem: null });
  expect(reports.all).toEqual([]);
  expect(harness.refreshes).toBeGreaterThanOrEqual(3);
  expect(harness.refreshes).toBeLessThan(8);
}, 60_000);

/** A token, and until when an appliance may use it according to the hub, by the wall clock. */
interface IssuedToken {
  readonly token: string;
  readonly until: number;
}

test('a token is valid for as long as the hub said, although each refresh ends the one before it', async () => {
  const emulator = { tokenLifetime: 600, refreshEndsAccessToken: true };
  const { harness } = await BrokerHarness.startPaired({ emulator, limits: { refreshEndsAccessToken: true } });
  await harness.addUser('dashboard', 'wallbox');
  const { time } = harness;
  const { id } = harness.connection('wallbox');
  let issued: IssuedToken[] = [];
  const waits: number[] = [];
  const ask = async (minTtl: number) => {
    const [asked, result] = [time.wall, await harness.run.tokenIssuer.issue(id, null, { minTtl })];
    waits.push(time.wall - asked);
    if (result.kind !== 'token') return result.kind;
    const until = time.wall + 1000 * result.expiresIn;
    issued.push({ token: result.accessToken.reveal(), until });
    return 'token';
  };
  const end = time.wall + 45 * MINUTE;
  for (let step = 0; time.wall < end; step++) {
    // One appliance asks often, and the other one now and then with a `min_ttl`.
    const asked = [ask(0), ...(step % 7 === 0 ? [ask(300_000)] : [])];
    const due = (loginOf(harness).refreshIn ?? 0) * 1000;
    await time.pass(due > 4000 ? Math.min(due - 3000, 7300) : 130);
    let kinds: readonly string[] | null = null;
    void Promise.all(asked).then((all) => {
      kinds = all;
    });
    for (let passed = 0; kinds === null && passed < 2000; passed += 10) await time.pass(10);
    expect(new Set(kinds)).toEqual(new Set(['token']));
    issued = issued.filter(({ until }) => until > time.wall);
    for (const token of new Set(issued.map((one) => one.token))) expect(await harness.whoami(token)).toBe(200);
  }
  // Every ten minutes, a minute before the end of the token, and not at three quarters of its lifetime.
  expect(harness.refreshes).toBe(5);
  expect(Math.max(...waits)).toBeGreaterThan(0);
  expect(Math.max(...waits)).toBeLessThanOrEqual(1500);
}, 60_000);

test('an ID token is issued if the scope has openid, and only then', async () => {
  const harness = await BrokerHarness.start({ emulator: { idToken: true } });
  const withIt = await harness.addPairedAppliance('dashboard', 'openid Monitoring');
  const without = await harness.addPairedAppliance('wallbox', 'Monitoring');
  const idTokenOf = async (id: string) => {
    const result = await harness.run.tokenIssuer.issue(id, null);
    if (result.kind !== 'token') throw new Error(result.kind);
    return result.idToken?.reveal();
  };
  expect(await idTokenOf(without)).toBeUndefined();
  const first = await idTokenOf(withIt);
  const [, claims = ''] = first?.split('.') ?? [];
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({ sub: 'demo' });
  await harness.time.pass(5000);
  await harness.run.grants.refresh(withIt);
  const second = await idTokenOf(withIt);
  expect(second).not.toBe(first);
  await harness.restart();
  expect(await idTokenOf(withIt)).toBe(second);
});

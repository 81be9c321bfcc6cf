// Notices of a site: one hub reports each, and another one where that has died, on a real PostgreSQL server.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type NoticeInput, Notices, type NoticesContext } from '../../src/broker/reports/notices.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import { deriveConditions, type HubConditionInput } from '../../src/core/health/derive-conditions.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { systemClock, systemTimers } from '../../src/system/clock.ts';
import { applianceStatus, connectionsOf } from '../control/status-samples.ts';
import { logTo } from '../support/log-to.ts';
import type { TestDatabase } from '../support/postgres/server.ts';
import { addressOf, openSiteStore, siteServer, useSiteServer } from './site-harness.ts';

useSiteServer();

const SINCE = '2031-04-05T06:07:08Z';
const UNWRITABLE: HubConditionInput = { code: 'store_unwritable', message: 'No database', since: SINCE };

/** The appliances whose login was refused, as all hubs of the site see it. */
let refused: string[];
let database: TestDatabase;
let hubs: AsyncDisposableStack;

beforeEach(async () => {
  refused = [];
  database = await (await siteServer()).createDatabase();
  hubs = new AsyncDisposableStack();
});

afterEach(() => hubs.disposeAsync());

/** The notices of a hub, and what it has reported, as "status notice appliance". */
interface NoticesOfHub extends AsyncDisposable {
  readonly notices: Notices;
  readonly delivered: string[];
  /** Problems of this hub only. */
  readonly problems: HubConditionInput[];
  /** It gets no news, and still takes itself for the holder of the lease: it was paused after it had looked. */
  isPaused: boolean;
}

async function startHub(id: string): Promise<NoticesOfHub> {
  const parts = hubs.use(new AsyncDisposableStack());
  const store = parts.use(await openSiteStore(addressOf(database.url), id));
  const environment = { clock: systemClock(id), timers: systemTimers, log: logTo(() => undefined) };
  const context = { environment, store: pausable(store, () => hub.isPaused), referenceClock: { confirmed: null } };
  const notices = parts.use(await Notices.load(context));
  const hub: NoticesOfHub = {
    notices,
    delivered: [],
    problems: [],
    isPaused: false,
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
  store.watch({ news: async (news) => (hub.isPaused ? undefined : notices.applyNews(news)) });
  notices.start(
    async () => inputWith(hub.problems),
    ({ status, notice, appliance }) => hub.delivered.push([status, notice, appliance ?? 'hub'].join(' ')),
  );
  return hub;
}

/** The store of a hub, which grants it every lease while it is paused. */
function pausable(store: PostgresStore, isPaused: () => boolean): NoticesContext['store'] {
  return {
    settings: store.settings,
    holdLease: async (work) => isPaused() || store.holdLease(work),
  };
}

function inputWith(problems: readonly HubConditionInput[]): NoticeInput {
  const problem = { code: 'refused', message: 'Why', since: SINCE } as const;
  const statuses: ApplianceStatus[] = ['wallbox', 'heater'].map((name) =>
    applianceStatus(refused.includes(name) ? { name, state: 'needs_pairing', problem } : { name, state: 'active' }),
  );
  const connections = connectionsOf(statuses);
  const conditions = deriveConditions({ connections, appliances: statuses, problems, pageUrl: 'https://hub/', now: 0 });
  const subjects = statuses.map(({ name, state }) => {
    const condition = conditions.flatMap((one) => (one.appliance === name ? one : []))[0] ?? null;
    const grant = { generation: 1, isFailing: false, remaining: 1000, lifetime: 3_600_000, overdue: null };
    return { key: `appliance ${name}`, title: name, state, condition, grant };
  });
  return { conditions, subjects } as NoticeInput;
}

/** Ends the lease for notices, as time does when its holder has died. */
async function endLease(): Promise<void> {
  await (await siteServer()).sql(database, "UPDATE latchkey.leases SET until = now() - interval '1 s'");
}

/**
 * Lets all hubs look for notices, and waits until they have reported these, in any order, and for what must not come.
 */
async function expectReports(all: readonly NoticesOfHub[], expected: readonly string[]): Promise<void> {
  for (const { notices } of all) notices.scheduleCheck();
  const reported = () => all.flatMap(({ delivered }) => delivered).toSorted();
  await expect.poll(reported, { timeout: 10_000 }).toEqual(expected.toSorted());
  await systemTimers.sleep(1200);
  expect(reported()).toEqual(expected.toSorted());
}

test('a notice about an appliance is reported once by one hub, and both hubs show it', async () => {
  const both = [await startHub('latchkey-0000000a'), await startHub('latchkey-0000000b')];
  refused = ['wallbox'];
  await expectReports(both, ['raised pairing_needed wallbox']);
  for (const { notices } of both) {
    expect(notices.activeNotices(inputWith([])).map(({ appliance }) => appliance)).toEqual(['wallbox']);
  }
  refused = [];
  await expectReports(both, ['raised pairing_needed wallbox', 'resolved pairing_needed wallbox']);
});

test('where the reporting hub has died, the other reports what is new, and nothing again', async () => {
  const [a, b] = [await startHub('latchkey-0000000a'), await startHub('latchkey-0000000b')];
  refused = ['wallbox'];
  await expectReports([a, b], ['raised pairing_needed wallbox']);
  const [dead, alive] = a.delivered.length > 0 ? [a, b] : [b, a];
  await dead[Symbol.asyncDispose]();
  await endLease();
  refused = ['wallbox', 'heater'];
  await expectReports([alive], ['raised pairing_needed heater']);
  refused = [];
  await expectReports(
    [alive],
    ['raised pairing_needed heater', 'resolved pairing_needed heater', 'resolved pairing_needed wallbox'],
  );
});

test('each hub reports a problem of its own, also after a restart, and not that of the other', async () => {
  const [a, b] = [await startHub('latchkey-0000000a'), await startHub('latchkey-0000000b')];
  b.problems.push(UNWRITABLE);
  await expectReports([b], ['raised store_unwritable hub']);
  await expectReports([a], []);
  await b[Symbol.asyncDispose]();
  const again = await startHub('latchkey-0000000b');
  again.problems.push(UNWRITABLE);
  await expectReports([a, again], []);
});

test('a hub that is missing is reported once, although both hubs see that', async () => {
  const [a, b] = [await startHub('latchkey-0000000a'), await startHub('latchkey-0000000b')];
  const missing: HubConditionInput = { code: 'hub_missing', message: 'A hub has not been seen', since: SINCE };
  for (const { problems } of [a, b]) problems.push(missing);
  await expectReports([a, b], ['raised hub_missing hub']);
  for (const { problems } of [a, b]) problems.length = 0;
  await expectReports([a, b], ['raised hub_missing hub', 'resolved hub_missing hub']);
});

test('a hub that was paused for longer than its lease reports nothing that the other has reported', async () => {
  const a = await startHub('latchkey-0000000a');
  await expectReports([a], []);
  const b = await startHub('latchkey-0000000b');
  a.isPaused = true;
  await endLease();
  refused = ['wallbox'];
  await expectReports([b], ['raised pairing_needed wallbox']);
  await expectReports([a], []);
  a.isPaused = false;
  refused = ['wallbox', 'heater'];
  await expectReports([b, a], ['raised pairing_needed wallbox', 'raised pairing_needed heater']);
  expect(a.delivered).toEqual([]);
});

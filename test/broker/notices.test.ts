import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { type NoticeInput, Notices, type NoticesContext } from '../../src/broker/reports/notices.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { BackupContents } from '../../src/core/backup-contents.ts';
import type { ConfirmedTime } from '../../src/core/clock.ts';
import type { ConnectionState } from '../../src/core/connections/connection-status.ts';
import { deriveConditions, type HubConditionInput } from '../../src/core/health/derive-conditions.ts';
import type { NoticeReport } from '../../src/core/health/notice.ts';
import type { GrantNoticeInput } from '../../src/core/health/notice-policy.ts';
import type { LogFields } from '../../src/core/log.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { captureState } from '../../src/store/backup/backup.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { applianceStatus, connectionsOf } from '../control/status-samples.ts';
import { DAY, HOUR, MINUTE } from '../core/samples.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';
import { memoryStateFolder } from '../support/state-folder.ts';

/** The notices of a hub in virtual time, on a real store; tests set their input. */
class NoticesHarness implements AsyncDisposable {
  readonly #activity = new PendingWork();
  readonly time = new FakeTime(this.#activity);
  readonly #folder = memoryStateFolder();
  readonly #sealing = jweSealing(randomBytes(STORE_KEY_BYTES));
  readonly appliances = new Map<string, { readonly status: ApplianceStatus; readonly grant: GrantNoticeInput }>();
  problems: HubConditionInput[] = [];
  confirmed: ConfirmedTime | null = null;
  /** The reports that were delivered, as "status notice appliance". */
  readonly delivered: string[] = [];
  readonly reports: NoticeReport[] = [];
  readonly logged: { readonly level: string; readonly event: string; readonly fields: LogFields }[] = [];
  writes = 0;
  unwritable = false;
  #store: SqliteStore | null = null;
  #notices: Notices | null = null;

  async start(): Promise<void> {
    const store = await openStore(this.#folder.path, this.#sealing, () => this.time.wall);
    this.#store = store;
    const log = logTo((event, fields, level) => this.logged.push({ level, event, fields }));
    const write = async <Result>(work: () => Promise<Result>) => {
      if (this.unwritable) throw new Error('the disk is full');
      this.writes += 1;
      return work();
    };
    const kept: NoticesContext['store'] = {
      settings: {
        ...store.settings,
        save: (values) => write(() => store.settings.save(values)),
        replace: (expected, values) => write(() => store.settings.replace(expected, values)),
      },
      holdLease: () => store.holdLease(),
    };
    const harness = this;
    this.#notices = await Notices.load({
      environment: { clock: this.time, timers: this.time, log },
      store: this.#activity.track(kept),
      referenceClock: {
        get confirmed() {
          return harness.confirmed;
        },
      },
    });
    this.#notices.start(
      async () => this.input,
      (report) => {
        this.reports.push(report);
        this.delivered.push([report.status, report.notice, report.appliance ?? 'hub'].join(' '));
      },
    );
    await this.time.pass(0);
  }

  async stop(): Promise<void> {
    await this.#notices?.[Symbol.asyncDispose]();
    this.#store?.[Symbol.dispose]();
    this.#store = null;
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  /** The state that a backup contains. */
  async backup(): Promise<BackupContents> {
    if (this.#store === null) throw new Error('the hub is off');
    return captureState(this.#store, 0);
  }

  get input(): NoticeInput {
    const appliances = [...this.appliances.values()];
    const statuses = appliances.map(({ status }) => status);
    const page = 'https://10.0.0.1:8443/';
    const conditions = deriveConditions({
      connections: connectionsOf(statuses),
      appliances: statuses,
      problems: this.problems,
      pageUrl: page,
      now: this.time.wall,
    });
    const conditionOf = (wanted: string) =>
      conditions.flatMap((one) => (one.appliance === null || one.appliance !== wanted ? [] : one))[0] ?? null;
    return {
      conditions,
      subjects: appliances.map(({ status: { name, title, state }, grant }) => ({
        key: `appliance ${name}`,
        title,
        state,
        grant,
        condition: conditionOf(name),
      })),
    };
  }

  /** The active notices. */
  get activeNoticeNames(): string[] {
    return this.#notices?.activeNotices(this.input).map(({ code, appliance }) => `${code} ${appliance ?? 'hub'}`) ?? [];
  }

  /** Removes the deliveries so far and returns them. */
  takeDelivered(): string[] {
    return this.delivered.splice(0);
  }

  changed(): void {
    this.#notices?.scheduleCheck();
  }

  good(name = 'wallbox', generation = 1): void {
    this.#set(name, 'active', null, { generation, isFailing: false, remaining: HOUR / 2 });
  }

  refused(name = 'wallbox', generation = 1): void {
    this.#set(name, 'needs_pairing', 'refused', { generation, isFailing: false, remaining: 0 });
  }

  failing(code: ProblemCode = 'portal_unreachable', grant: Partial<GrantNoticeInput> = {}, name = 'wallbox'): void {
    this.#set(name, 'retrying', code, { generation: 1, isFailing: true, remaining: 0, ...grant });
  }

  #set(name: string, state: ConnectionState, code: ProblemCode | null, grant: Partial<GrantNoticeInput>) {
    const problem = code === null ? null : { code, message: 'Why', since: '2031-04-05T06:07:08Z' };
    const known = { generation: 1, isFailing: false, remaining: null, lifetime: HOUR, overdue: null, ...grant };
    this.appliances.set(name, { status: applianceStatus({ name, state, problem }), grant: known });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#folder[Symbol.dispose]();
  }
}

let harness: NoticesHarness;

async function start(): Promise<NoticesHarness> {
  harness = new NoticesHarness();
  harness.good();
  await harness.start();
  return harness;
}

afterEach(() => harness[Symbol.asyncDispose]());

test('a notice is sent soon after a change, repeated each day while it is active, and resolved once', async () => {
  await start();
  harness.refused();
  harness.changed();
  await harness.time.pass(1000);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox']);
  expect(harness.activeNoticeNames).toEqual(['pairing_needed wallbox']);
  await harness.time.pass(DAY - 2 * MINUTE);
  expect(harness.takeDelivered()).toEqual([]);
  await harness.time.pass(3 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['repeated pairing_needed wallbox']);
  await harness.time.pass(2 * DAY + 10 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['repeated pairing_needed wallbox', 'repeated pairing_needed wallbox']);
  harness.good('wallbox', 2);
  await harness.time.pass(MINUTE);
  expect(harness.takeDelivered()).toEqual(['resolved pairing_needed wallbox']);
  expect(harness.activeNoticeNames).toEqual([]);
  await harness.time.pass(3 * DAY);
  expect(harness.takeDelivered()).toEqual([]);
});

test('each notice is logged with the level of its severity', async () => {
  await start();
  harness.refused();
  await harness.time.pass(MINUTE);
  harness.good('wallbox', 2);
  await harness.time.pass(MINUTE);
  const fields = { notice: 'pairing_needed', appliance: 'wallbox', severity: 'error' };
  expect(harness.logged).toMatchObject([
    { level: 'error', event: 'notice', fields: { ...fields, status: 'raised' } },
    {
      level: 'info',
      event: 'notice',
      fields: { ...fields, status: 'resolved', message: 'wallbox is connected again' },
    },
  ]);
});

test('notices are written to the store only when one is sent', async () => {
  await start();
  harness.refused();
  await harness.time.pass(HOUR);
  expect(harness.writes).toBe(1);
  await harness.time.pass(DAY);
  expect(harness.writes).toBe(2);
});

test('the hub warns of an expiring token while refreshes fail, and a graver notice replaces a lesser one', async () => {
  await start();
  harness.failing('portal_unreachable', { remaining: 10 * DAY, lifetime: 20 * DAY });
  await harness.time.pass(DAY - MINUTE);
  expect(harness.takeDelivered()).toEqual([]);
  await harness.time.pass(3 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['raised refresh_failing wallbox']);
  harness.failing('portal_unreachable', { remaining: DAY, lifetime: 20 * DAY });
  await harness.time.pass(MINUTE);
  expect(harness.takeDelivered()).toEqual(['raised token_ending wallbox']);
  expect(harness.activeNoticeNames).toEqual(['token_ending wallbox']);
  harness.refused();
  await harness.time.pass(MINUTE);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox']);
});

test('a restart repeats no notice early, and the daily repetition continues', async () => {
  await start();
  harness.refused();
  await harness.time.pass(20 * HOUR);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox']);
  await harness.restart();
  await harness.time.pass(3 * HOUR);
  expect(harness.takeDelivered()).toEqual([]);
  await harness.time.pass(HOUR + 2 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['repeated pairing_needed wallbox']);
});

test.each([
  ['the true time is known', true, 5 * HOUR],
  ['the true time is unknown', false, DAY],
])('a notice is repeated after a day over a reboot with a wrong clock: %s', async (_what, isKnown, wait) => {
  await start();
  const confirm = (wall: number) => {
    harness.confirmed = isKnown ? { wall, at: harness.time.now() } : null;
  };
  confirm(harness.time.wall);
  harness.refused();
  await harness.time.pass(MINUTE);
  const trueTime = harness.time.wall;
  harness.takeDelivered();
  await harness.stop();
  // The hub is off for 19 hours, and its clock then starts in 1970.
  harness.time.reboot(0);
  confirm(trueTime + 19 * HOUR);
  await harness.start();
  await harness.time.pass(wait - 2 * MINUTE);
  expect(harness.takeDelivered()).toEqual([]);
  await harness.time.pass(4 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['repeated pairing_needed wallbox']);
});

test('a problem that was fixed while the hub was off is notified as resolved at its start', async () => {
  await start();
  harness.refused();
  await harness.time.pass(MINUTE);
  harness.takeDelivered();
  await harness.stop();
  harness.time.reboot(harness.time.wall + DAY);
  harness.good('wallbox', 2);
  await harness.start();
  expect(harness.takeDelivered()).toEqual(['resolved pairing_needed wallbox']);
});

test('a jump of the wall clock makes no notice due', async () => {
  await start();
  harness.failing();
  await harness.time.pass(30 * MINUTE);
  harness.time.wall += 400 * DAY;
  await harness.time.pass(20 * MINUTE);
  expect(harness.takeDelivered()).toEqual([]);
  harness.refused();
  await harness.time.pass(MINUTE);
  harness.time.wall -= 800 * DAY;
  await harness.time.pass(HOUR);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox']);
});

test('a recurring notice is sent at most three times a day with its ends, and status always shows it', async () => {
  await start();
  for (let times = 1; times <= 50; times++) {
    harness.refused('wallbox', times);
    await harness.time.pass(5 * MINUTE);
    expect(harness.activeNoticeNames).toEqual(['pairing_needed wallbox']);
    harness.good('wallbox', times + 1);
    await harness.time.pass(5 * MINUTE);
  }
  const delivered = harness.takeDelivered();
  expect(delivered.filter((line) => line.startsWith('raised'))).toHaveLength(3);
  expect(delivered.filter((line) => line.startsWith('resolved'))).toHaveLength(3);
  expect(delivered).toHaveLength(6);
  // A restart does not reset the limit.
  await harness.restart();
  harness.refused('wallbox', 99);
  await harness.time.pass(MINUTE);
  expect(harness.takeDelivered()).toEqual([]);
  // A problem that lasts is notified once the limit permits it.
  await harness.time.pass(DAY);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox']);
});

test('each appliance has its own notice, and those that need a person come first', async () => {
  await start();
  harness.failing('portal_unreachable', {}, 'car');
  harness.refused();
  await harness.time.pass(2 * HOUR);
  expect(harness.activeNoticeNames).toEqual(['pairing_needed wallbox', 'token_ending car']);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox', 'raised token_ending car']);
});

test('a hub problem is notified once it lasts, and a restarted hub waits some minutes before it resolves it', async () => {
  await start();
  const since = '2031-04-05T06:07:08Z';
  harness.problems = [{ code: 'not_announced', message: 'No mDNS', since }];
  await harness.time.pass(9 * MINUTE);
  expect(harness.takeDelivered()).toEqual([]);
  await harness.time.pass(2 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['raised not_announced hub']);
  harness.problems = [];
  await harness.restart();
  await harness.time.pass(5 * MINUTE);
  expect(harness.activeNoticeNames).toEqual([]);
  expect(harness.takeDelivered()).toEqual([]);
  await harness.time.pass(6 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['resolved not_announced hub']);
});

test('a recovered store is notified once, and resolved at the next start', async () => {
  await start();
  harness.problems = [{ code: 'store_recovered', message: 'It was damaged', since: '2031-04-05T06:07:08Z' }];
  await harness.time.pass(3 * DAY);
  expect(harness.takeDelivered()).toEqual(['raised store_recovered hub']);
  harness.problems = [];
  await harness.restart();
  expect(harness.takeDelivered()).toEqual(['resolved store_recovered hub']);
});

test('a notice is sent while the disk is full, and saved when the store is writable again', async () => {
  await start();
  harness.unwritable = true;
  harness.refused();
  await harness.time.pass(5 * MINUTE);
  expect(harness.takeDelivered()).toEqual(['raised pairing_needed wallbox']);
  expect(harness.logged.filter(({ event }) => event === 'notices_not_stored')).toHaveLength(1);
  harness.unwritable = false;
  await harness.time.pass(MINUTE);
  expect(harness.writes).toBe(1);
  await harness.restart();
  expect(harness.takeDelivered()).toEqual([]);
});

test('a backup contains no record of sent notices', async () => {
  await start();
  harness.refused();
  await harness.time.pass(MINUTE);
  expect([...(await harness.backup()).settings.keys()]).not.toContain('notices');
});

test('stored notices that cannot be read are discarded with an error in the log', async () => {
  await start();
  await harness.stop();
  const half = { notice: { code: 'pairing_needed', appliance: 'wallbox' }, over: false };
  const since = '2031-04-05T06:07:08Z';
  const good = {
    code: 'pairing_needed',
    severity: 'error',
    message: '',
    what_to_do: '',
    since,
    appliance: 'wallbox',
    connection: 'wallbox',
    appliances: ['wallbox'],
  };
  const record = { notice: good, generation: 1, lastReported: null, raised: [], over: false };
  const records = [half, { ...record, lastReported: 5 }, { ...record, raised: [null] }];
  const values = [null, [1], ...records.map((one) => [['appliance wallbox', one]])];
  const broken = ['[[', ...values.map((value) => JSON.stringify(value))];
  for (const text of broken) {
    const settings = {
      get: async () => text,
      getAll: async () => new Map(),
      save: async () => undefined,
      replace: async () => true,
    };
    const store = { settings, holdLease: async () => true };
    const { time } = harness;
    const failures: string[] = [];
    const log = logTo((event, _fields, level) => level === 'error' && failures.push(event));
    const environment = { clock: time, timers: time, log };
    const statuses: string[] = [];
    const deliver = ({ status }: NoticeReport) => void statuses.push(status);
    harness.refused();
    await using notices = await Notices.load({ environment, store, referenceClock: harness });
    notices.start(async () => harness.input, deliver);
    await time.pass(0);
    expect(statuses, text).toEqual(['raised']);
    expect(failures).toEqual(['notice']);
  }
});

test('changes within half a second are notified in one round and written once', async () => {
  await start();
  for (let number = 0; number < 100; number++) {
    harness.refused(`a${number}`);
    harness.changed();
    await harness.time.pass(4);
  }
  await harness.time.pass(500);
  expect(harness.takeDelivered()).toHaveLength(100);
  expect(harness.writes).toBe(1);
});

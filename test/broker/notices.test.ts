import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import { type NoticeInput, Notices } from '../../src/broker/reports/notices.ts';
import type { ApplianceState, ApplianceStatus } from '../../src/core/administration.ts';
import type { BackupState } from '../../src/core/backup-state.ts';
import type { ConfirmedTime } from '../../src/core/clock.ts';
import { deriveConditions, type HubConditionInput } from '../../src/core/health/derive-conditions.ts';
import type { LogFields } from '../../src/core/log.ts';
import type { NoticeReport } from '../../src/core/reports/notice.ts';
import type { GrantNoticeInput } from '../../src/core/reports/notice-policy.ts';
import type { ProblemCode } from '../../src/core/reports/problem.ts';
import { captureState } from '../../src/store/backup/backup.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite-store.ts';
import { applianceStatus } from '../control/fake-administration.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { logTo } from '../support/log-to.ts';
import { memoryStateFolder } from '../support/state-folder.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The notices of a hub in virtual time, on a real store; what they go by is set by hand. */
class House implements AsyncDisposable {
  readonly #activity = new PendingWork();
  readonly time = new FakeTime(this.#activity);
  readonly #folder = memoryStateFolder();
  readonly #sealing = jweSealing(randomBytes(STORE_KEY_BYTES));
  readonly appliances = new Map<string, { readonly status: ApplianceStatus; readonly grant: GrantNoticeInput }>();
  problems: HubConditionInput[] = [];
  confirmed: ConfirmedTime | null = null;
  /** What was carried out of the house, as "status notice appliance". */
  readonly told: string[] = [];
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
    const kept = {
      setting: (name: string) => store.setting(name),
      saveSetting: async (name: string, value: string) => {
        if (this.unwritable) throw new Error('the disk is full');
        this.writes += 1;
        await store.saveSetting(name, value);
      },
    };
    const house = this;
    this.#notices = await Notices.load({
      environment: { clock: this.time, timers: this.time, log },
      store: this.#activity.track(kept),
      referenceClock: {
        get confirmed() {
          return house.confirmed;
        },
      },
    });
    this.#notices.start(
      () => this.facts,
      (report) => {
        this.reports.push(report);
        this.told.push([report.status, report.notice, report.appliance ?? 'hub'].join(' '));
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

  /** What a backup has. */
  async backup(): Promise<BackupState> {
    if (this.#store === null) throw new Error('the hub is off');
    return captureState(this.#store, 0);
  }

  get facts(): NoticeInput {
    const appliances = [...this.appliances.values()];
    const statuses = appliances.map(({ status }) => status);
    const page = 'https://10.0.0.1:8443/';
    const conditions = deriveConditions({
      appliances: statuses,
      problems: this.problems,
      pageUrl: page,
      now: this.time.wall,
    });
    const conditionOf = (wanted: string) =>
      conditions.flatMap((one) => (one.appliance === null || one.appliance !== wanted ? [] : one))[0] ?? null;
    return {
      conditions,
      appliances: appliances.map(({ status: { name, state }, grant }) => ({
        ...{ name, state, grant, condition: conditionOf(name) },
      })),
    };
  }

  /** The notices that stand. */
  get standing(): string[] {
    return this.#notices?.activeNotices(this.facts).map(({ code, appliance }) => `${code} ${appliance ?? 'hub'}`) ?? [];
  }

  /** What was told since it was asked last. */
  news(): string[] {
    return this.told.splice(0);
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

  /** The hub was started, and nothing was tried yet. */
  untried(name = 'wallbox', generation = 1): void {
    this.#set(name, 'retrying', 'clock_unknown', { generation, isFailing: false, remaining: null });
  }

  #set(name: string, state: ApplianceState, code: ProblemCode | null, grant: Partial<GrantNoticeInput>) {
    const problem = code === null ? null : { code, message: 'Why', since: '2031-04-05T06:07:08Z' };
    const known = { generation: 1, isFailing: false, remaining: null, lifetime: HOUR, overdue: null, ...grant };
    this.appliances.set(name, { status: applianceStatus({ name, state, problem }), grant: known });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#folder[Symbol.dispose]();
  }
}

let house: House;

async function start(): Promise<House> {
  house = new House();
  house.good();
  await house.start();
  return house;
}

afterEach(() => house[Symbol.asyncDispose]());

test('a notice is sent soon after a change, repeated each day while it is active, and resolved once', async () => {
  await start();
  house.refused();
  house.changed();
  await house.time.pass(1000);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
  expect(house.standing).toEqual(['pairing_needed wallbox']);
  await house.time.pass(DAY - 2 * MINUTE);
  expect(house.news()).toEqual([]);
  await house.time.pass(3 * MINUTE);
  expect(house.news()).toEqual(['repeated pairing_needed wallbox']);
  await house.time.pass(2 * DAY + 10 * MINUTE);
  expect(house.news()).toEqual(['repeated pairing_needed wallbox', 'repeated pairing_needed wallbox']);
  house.good('wallbox', 2);
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual(['resolved pairing_needed wallbox']);
  expect(house.standing).toEqual([]);
  await house.time.pass(3 * DAY);
  expect(house.news()).toEqual([]);
});

test('each notice is logged with the level of its severity', async () => {
  await start();
  house.refused();
  await house.time.pass(MINUTE);
  house.good('wallbox', 2);
  await house.time.pass(MINUTE);
  const fields = { notice: 'pairing_needed', appliance: 'wallbox', severity: 'error' };
  expect(house.logged).toMatchObject([
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
  house.refused();
  await house.time.pass(HOUR);
  expect(house.writes).toBe(1);
  await house.time.pass(DAY);
  expect(house.writes).toBe(2);
});

test('the hub warns of an expiring token while refreshes fail, and a graver notice replaces a lesser one', async () => {
  await start();
  house.failing('portal_unreachable', { remaining: 10 * DAY, lifetime: 20 * DAY });
  await house.time.pass(DAY - MINUTE);
  expect(house.news()).toEqual([]);
  await house.time.pass(3 * MINUTE);
  expect(house.news()).toEqual(['raised refresh_failing wallbox']);
  house.failing('portal_unreachable', { remaining: DAY, lifetime: 20 * DAY });
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual(['raised token_ending wallbox']);
  expect(house.standing).toEqual(['token_ending wallbox']);
  house.refused();
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
});

test('a lost answer is notified once and not repeated', async () => {
  await start();
  house.failing('answer_lost', { remaining: HOUR });
  await house.time.pass(2 * MINUTE);
  expect(house.news()).toEqual(['raised answer_lost wallbox']);
  // With a token that lasts long.
  house.failing('answer_lost', { remaining: 30 * DAY, lifetime: 40 * DAY });
  await house.time.pass(23 * HOUR);
  expect(house.news()).toEqual([]);
});

test('a restart repeats no notice early, and the daily repetition continues', async () => {
  await start();
  house.refused();
  await house.time.pass(20 * HOUR);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
  await house.restart();
  await house.time.pass(3 * HOUR);
  expect(house.news()).toEqual([]);
  await house.time.pass(HOUR + 2 * MINUTE);
  expect(house.news()).toEqual(['repeated pairing_needed wallbox']);
});

test.each([
  ['the true time is known', true, 5 * HOUR],
  ['the true time is unknown', false, DAY],
])('a notice is repeated after a day over a reboot with a wrong clock: %s', async (_what, isKnown, wait) => {
  await start();
  const confirm = (wall: number) => {
    house.confirmed = isKnown ? { wall, at: house.time.now() } : null;
  };
  confirm(house.time.wall);
  house.refused();
  await house.time.pass(MINUTE);
  const true_time = house.time.wall;
  house.news();
  await house.stop();
  // Off for 19 hours, and the clock says 1970 then.
  house.time.reboot(0);
  confirm(true_time + 19 * HOUR);
  await house.start();
  await house.time.pass(wait - 2 * MINUTE);
  expect(house.news()).toEqual([]);
  await house.time.pass(4 * MINUTE);
  expect(house.news()).toEqual(['repeated pairing_needed wallbox']);
});

test('a problem that was fixed while the hub was off is notified as resolved at its start', async () => {
  await start();
  house.refused();
  await house.time.pass(MINUTE);
  house.news();
  await house.stop();
  house.time.reboot(house.time.wall + DAY);
  house.good('wallbox', 2);
  await house.start();
  expect(house.news()).toEqual(['resolved pairing_needed wallbox']);
});

test('a restarted hub resolves a notice only when new tokens are there', async () => {
  await start();
  house.failing();
  await house.time.pass(2 * HOUR);
  expect(house.news()).toEqual(['raised token_ending wallbox']);
  await house.stop();
  house.time.reboot(house.time.wall + MINUTE);
  house.good();
  await house.start();
  // What is known now is that it is well: `status` says so, and nobody is told that it is over before it was tried.
  expect(house.standing).toEqual([]);
  house.untried();
  expect(house.standing).toEqual(['token_ending wallbox']);
  house.failing();
  await house.time.pass(5 * MINUTE);
  expect(house.standing).toEqual(['token_ending wallbox']);
  expect(house.news()).toEqual([]);
  house.good('wallbox', 2);
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual(['resolved token_ending wallbox']);
});

test('a notice leaves status when its cause ends, and is sent as resolved when there are new tokens', async () => {
  await start();
  house.failing('misconfigured', { remaining: HOUR });
  await house.time.pass(MINUTE);
  expect(house.standing).toEqual(['misconfigured wallbox']);
  expect(house.news()).toEqual(['raised misconfigured wallbox']);
  house.failing('portal_unreachable', { remaining: HOUR });
  expect(house.standing).toEqual([]);
  await house.time.pass(2 * DAY);
  expect(house.news()).not.toContain('repeated misconfigured wallbox');
  house.good('wallbox', 2);
  await house.time.pass(MINUTE);
  expect(house.news().at(-1)).toMatch(/^resolved \w+ wallbox$/);
});

test('a jump of the wall clock makes no notice due', async () => {
  await start();
  house.failing();
  await house.time.pass(30 * MINUTE);
  house.time.wall += 400 * DAY;
  await house.time.pass(20 * MINUTE);
  expect(house.news()).toEqual([]);
  house.refused();
  await house.time.pass(MINUTE);
  house.time.wall -= 800 * DAY;
  await house.time.pass(HOUR);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
});

test('a portal that corrects its time makes no notice due', async () => {
  await start();
  house.confirmed = { wall: house.time.wall, at: house.time.now() };
  house.refused();
  await house.time.pass(MINUTE);
  house.confirmed = { wall: house.time.wall + 400 * DAY, at: house.time.now() };
  await house.time.pass(HOUR);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
});

test('suspended time counts towards the daily repetition of a notice', async () => {
  await start();
  house.refused();
  await house.time.pass(MINUTE);
  house.news();
  house.time.suspend(DAY);
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual(['repeated pairing_needed wallbox']);
});

test('a recurring notice is sent at most three times a day with its ends, and status always shows it', async () => {
  await start();
  for (let times = 1; times <= 50; times++) {
    house.refused('wallbox', times);
    await house.time.pass(5 * MINUTE);
    expect(house.standing).toEqual(['pairing_needed wallbox']);
    house.good('wallbox', times + 1);
    await house.time.pass(5 * MINUTE);
  }
  const told = house.news();
  expect(told.filter((line) => line.startsWith('raised'))).toHaveLength(3);
  expect(told.filter((line) => line.startsWith('resolved'))).toHaveLength(3);
  expect(told).toHaveLength(6);
  // And no restart makes that more.
  await house.restart();
  house.refused('wallbox', 99);
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual([]);
  // But what lasts is told when it may be.
  await house.time.pass(DAY);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
});

test('the removal of an appliance resolves its notice', async () => {
  await start();
  house.refused();
  await house.time.pass(MINUTE);
  house.appliances.clear();
  await house.time.pass(MINUTE);
  expect(house.news()).toEqual(['raised pairing_needed wallbox', 'resolved pairing_needed wallbox']);
  expect(house.reports.at(-1)).toMatchObject({ message: 'wallbox was removed from the hub', what_to_do: 'Nothing' });
});

test('each appliance has its own notice, and those that need a person come first', async () => {
  await start();
  house.failing('portal_unreachable', {}, 'car');
  house.refused();
  await house.time.pass(2 * HOUR);
  expect(house.standing).toEqual(['pairing_needed wallbox', 'token_ending car']);
  expect(house.news()).toEqual(['raised pairing_needed wallbox', 'raised token_ending car']);
});

test('a hub problem is notified once it lasts, and a restarted hub waits some minutes before it resolves it', async () => {
  await start();
  const since = '2031-04-05T06:07:08Z';
  house.problems = [{ code: 'not_announced', message: 'No mDNS', since }];
  await house.time.pass(9 * MINUTE);
  expect(house.news()).toEqual([]);
  await house.time.pass(2 * MINUTE);
  expect(house.news()).toEqual(['raised not_announced hub']);
  house.problems = [];
  await house.restart();
  await house.time.pass(5 * MINUTE);
  expect(house.standing).toEqual([]);
  expect(house.news()).toEqual([]);
  await house.time.pass(6 * MINUTE);
  expect(house.news()).toEqual(['resolved not_announced hub']);
});

test('a recovered store is notified once, and resolved at the next start', async () => {
  await start();
  house.problems = [{ code: 'store_recovered', message: 'It was damaged', since: '2031-04-05T06:07:08Z' }];
  await house.time.pass(3 * DAY);
  expect(house.news()).toEqual(['raised store_recovered hub']);
  house.problems = [];
  await house.restart();
  expect(house.news()).toEqual(['resolved store_recovered hub']);
});

test('a notice is sent while the disk is full, and saved when the store is writable again', async () => {
  await start();
  house.unwritable = true;
  house.refused();
  await house.time.pass(5 * MINUTE);
  expect(house.news()).toEqual(['raised pairing_needed wallbox']);
  expect(house.logged.filter(({ event }) => event === 'notices_not_stored')).toHaveLength(1);
  house.unwritable = false;
  await house.time.pass(MINUTE);
  expect(house.writes).toBe(1);
  await house.restart();
  expect(house.news()).toEqual([]);
});

test('a backup contains no record of sent notices', async () => {
  await start();
  house.refused();
  await house.time.pass(MINUTE);
  expect([...(await house.backup()).settings.keys()]).not.toContain('notices');
});

test('stored notices that cannot be read are discarded with an error in the log', async () => {
  await start();
  await house.stop();
  const half = { notice: { code: 'pairing_needed', appliance: 'wallbox' }, over: false };
  const since = '2031-04-05T06:07:08Z';
  const good = { code: 'pairing_needed', appliance: 'wallbox', severity: 'error', message: '', what_to_do: '', since };
  const record = { notice: good, generation: 1, told: null, raised: [], over: false };
  const spoilt = [
    { ...record, raised: [null] },
    { ...record, told: 5 },
    { ...record, raised: [{ at: null, time: 1 }] },
  ].map((one) => [['appliance wallbox', one]]);
  const whole = [null, {}, [1], [['appliance wallbox']], [['appliance wallbox', { notice: null }]], ...spoilt];
  const broken = ['', '[[', ...[...whole, [['appliance wallbox', half]]].map((value) => JSON.stringify(value))];
  for (const text of broken) {
    const kept = { setting: async () => text, saveSetting: async () => undefined };
    const { time } = house;
    const failures: string[] = [];
    const log = logTo((event, _fields, level) => level === 'error' && failures.push(event));
    const environment = { clock: time, timers: time, log };
    const told: string[] = [];
    const carry = ({ status }: NoticeReport) => void told.push(status);
    house.refused();
    await using notices = await Notices.load({ environment, store: kept, referenceClock: house });
    notices.start(() => house.facts, carry);
    await time.pass(0);
    expect(told, text).toEqual(['raised']);
    expect(failures).toEqual(['notice']);
  }
});

test('a notice recorded in the far future by a wrong clock is repeated after a day', async () => {
  await start();
  house.confirmed = { wall: house.time.wall + 4000 * DAY, at: house.time.now() };
  house.refused();
  await house.time.pass(MINUTE);
  house.news();
  await house.stop();
  house.time.reboot(house.time.wall + HOUR);
  house.confirmed = { wall: house.time.wall, at: house.time.now() };
  await house.start();
  await house.time.pass(DAY + 2 * MINUTE);
  expect(house.news()).toEqual(['repeated pairing_needed wallbox']);
});

test('changes within half a second are notified in one round and written once', async () => {
  await start();
  for (let number = 0; number < 100; number++) {
    house.refused(`a${number}`);
    house.changed();
    await house.time.pass(4);
  }
  await house.time.pass(500);
  expect(house.news()).toHaveLength(100);
  expect(house.writes).toBe(1);
});

// The usage of appliances in virtual time, on a real store and with a real emulator as the portal.
import { describe, expect, test } from 'vitest';
import { collectNoticeInput } from '../../src/broker/status/notice-input.ts';
import { rfc3339, utcDay } from '../../src/core/clock.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import { connectionsOf } from '../control/status-samples.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { requestToken } from './broker-services.ts';

function usageOf(harness: BrokerHarness, name = 'wallbox') {
  const { lastToken, tokens } = harness.statusOf(name);
  return { lastToken, ...tokens };
}

/** The codes of the conditions of an appliance. */
function conditionsOf(harness: BrokerHarness, name = 'wallbox') {
  const status = harness.statusOf(name);
  const context = { problems: [], pageUrl: 'https://hub/', now: harness.time.wall };
  return deriveConditions({ connections: connectionsOf([status]), appliances: [status], ...context }).map(
    ({ code, severity, since }) => ({ code, severity, since }),
  );
}

/** The number of tokens of an appliance that are in the store. */
async function storedCount(harness: BrokerHarness, id: string): Promise<number> {
  const { days = [] } = (await harness.run.store.usage.own()).get(id) ?? {};
  return days.reduce((sum, { count }) => sum + count, 0);
}

test('each appliance of a connection has its own last token and counts, and only issued tokens count', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  expect(usageOf(harness)).toEqual({ lastToken: null, today: 0, last14Days: 0 });
  expect(await requestToken(harness, 'wallbox')).toBe('not_paired');
  expect(usageOf(harness)).toEqual({ lastToken: null, today: 0, last14Days: 0 });
  await harness.pairAgain('wallbox');
  await harness.addUser('dashboard', 'wallbox');
  const token = await requestToken(harness, 'wallbox');
  await harness.time.pass(MINUTE);
  for (let times = 0; times < 2; times++) expect(await requestToken(harness, 'dashboard')).toBe(token);
  // What people do with the connection is no use by an appliance.
  await harness.token(appliance.id);
  const [first, second] = [usageOf(harness), usageOf(harness, 'dashboard')];
  expect([first, second]).toMatchObject([
    { today: 1, last14Days: 1 },
    { today: 2, last14Days: 2 },
  ]);
  expect(Date.parse(second.lastToken ?? '') - Date.parse(first.lastToken ?? '')).toBeGreaterThanOrEqual(59 * SECOND);
});

test('an appliance of several connections has counts for each, and one that it never asked for is pointed out', async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.addPairedAppliance('heater');
  const id = await harness.addUser('hass', 'wallbox');
  const [asked, other] = [harness.connection('wallbox'), harness.connection('heater')];
  await harness.run.appliances.move(harness.run.appliances.get('hass'), [asked, other], async () => true);
  const pointedOut = () =>
    deriveConditions({
      ...{ connections: [], appliances: [harness.statusOf('hass')], problems: [] },
      ...{ pageUrl: 'https://hub/', now: harness.time.wall },
    }).map(({ message }) => message);
  expect(pointedOut()).toEqual([expect.stringContaining('hass has not got a token yet')]);
  for (let times = 0; times < 2; times++) harness.run.usageRecorder.record(id, asked.id);
  const counts = (tokens: number) => ({ today: tokens, last14Days: tokens });
  const usage = () => harness.statusOf('hass').usage;
  expect(usage()).toEqual([
    { connection: 'wallbox', title: 'wallbox', lastToken: expect.any(String), tokens: counts(2) },
    { connection: 'heater', title: 'heater', lastToken: null, tokens: counts(0) },
  ]);
  expect(pointedOut()).toEqual([expect.stringContaining('hass (heater) has not got a token yet')]);
  await harness.restart();
  expect(usage()).toMatchObject([{ tokens: counts(2) }, { lastToken: null }]);
  harness.run.usageRecorder.record(id, other.id);
  harness.run.usageRecorder.record(id, asked.id);
  expect(usage()).toMatchObject([{ tokens: counts(3) }, { tokens: counts(1) }]);
  expect(usageOf(harness, 'hass')).toMatchObject(counts(4));
  expect(pointedOut()).toEqual([]);
});

test('an appliance that gets a further connection keeps the counts of the first one', async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.addPairedAppliance('heater');
  const { appliances } = harness.run;
  await requestToken(harness, 'wallbox');
  const both = [harness.connection('wallbox'), harness.connection('heater')];
  await appliances.move(appliances.get('wallbox'), both, async () => true);
  expect(harness.statusOf('wallbox').usage).toMatchObject([{ tokens: { today: 1 } }, { lastToken: null }]);
});

test('tokens are counted by UTC days, and count for fourteen of them', async () => {
  const { harness } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 40 * 24 * 3600 } });
  const { time } = harness;
  await requestToken(harness, 'wallbox');
  // The last minute of the day, and the first one of the next.
  time.suspend(DAY - (time.wall % DAY) - MINUTE);
  await requestToken(harness, 'wallbox');
  const lastToken = rfc3339(time.wall);
  expect(usageOf(harness)).toMatchObject({ today: 2, last14Days: 2 });
  await time.pass(2 * MINUTE);
  expect(usageOf(harness)).toMatchObject({ today: 0, last14Days: 2 });
  expect(Math.abs(Date.parse(usageOf(harness).lastToken ?? '') - Date.parse(lastToken))).toBeLessThanOrEqual(SECOND);
  await requestToken(harness, 'wallbox');
  expect(usageOf(harness)).toMatchObject({ today: 1, last14Days: 3 });
  time.suspend(12 * DAY);
  expect(usageOf(harness)).toMatchObject({ today: 0, last14Days: 3 });
  time.suspend(DAY);
  expect(usageOf(harness)).toMatchObject({ today: 0, last14Days: 1 });
  time.suspend(DAY);
  expect(usageOf(harness)).toMatchObject({ today: 0, last14Days: 0 });
});

describe('usage in the store', () => {
  test('the usage survives an orderly restart, and is counted on', async () => {
    const { harness } = await BrokerHarness.startPaired();
    for (let times = 0; times < 3; times++) await requestToken(harness, 'wallbox');
    const before = usageOf(harness);
    await harness.restart();
    expect(usageOf(harness)).toEqual(before);
    await requestToken(harness, 'wallbox');
    expect(usageOf(harness)).toMatchObject({ today: 4, last14Days: 4 });
    await harness.restart();
    expect(usageOf(harness)).toMatchObject({ today: 4, last14Days: 4 });
  });

  test('the first token of an appliance at a connection is written soon, so a power cut does not make it unused', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    for (let times = 0; times < 2; times++) await requestToken(harness, 'wallbox');
    await harness.time.pass(MINUTE);
    await harness.crash();
    await harness.start();
    expect([await storedCount(harness, id), usageOf(harness).last14Days]).toEqual([2, 2]);
  });

  test('a further token is not written before it is six hours old, and then with a refresh of its connection', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await requestToken(harness, 'wallbox');
    await harness.time.pass(MINUTE);
    let alone = 0;
    const { store } = harness.run;
    const save = store.usage.save.bind(store);
    store.usage.save = (usage) => {
      alone += 1;
      return save(usage);
    };
    await requestToken(harness, 'wallbox');
    await harness.time.pass(5 * HOUR);
    await requestToken(harness, 'wallbox');
    expect(await storedCount(harness, id)).toBe(1);
    await harness.time.pass(2 * HOUR);
    expect(await storedCount(harness, id)).toBe(3);
    await requestToken(harness, 'wallbox');
    expect([await storedCount(harness, id), usageOf(harness).last14Days]).toEqual([3, 4]);
    expect(alone).toBe(0);
  });

  test('of tokens that could not be written for forty days, those of the last fourteen are counted and written', async () => {
    const harness = await BrokerHarness.start();
    // Without a grant, nothing else is written.
    const { appliance } = await harness.addAppliance('wallbox');
    for (let day = 0; day < 40; day++) {
      harness.run.usageRecorder.record(appliance.id, appliance.id);
      harness.time.suspend(DAY - HOUR);
      await harness.time.pass(HOUR);
    }
    expect(usageOf(harness)).toMatchObject({ today: 0, last14Days: 13 });
    await harness.restart();
    expect(usageOf(harness)).toMatchObject({ today: 0, last14Days: 13 });
    expect(await storedCount(harness, appliance.id)).toBe(13);
  });

  test('the hub stops and starts, and logs what is lost, if the usage cannot be written and read', async () => {
    const { harness } = await BrokerHarness.startPaired();
    await requestToken(harness, 'wallbox');
    harness.run.store.usage.save = () => Promise.reject(new Error('the disk is full'));
    await harness.restart();
    expect(harness.events.filter(({ event }) => event === 'usage_write_failed')).toMatchObject([
      { level: 'warn', fields: { error: 'the disk is full' } },
    ]);
    expect(usageOf(harness)).toEqual({ lastToken: null, today: 0, last14Days: 0 });
  });

  test('the usage of an appliance that was removed is neither written nor kept in memory', async () => {
    const { harness } = await BrokerHarness.startPaired();
    const user = await harness.addUser('dashboard', 'wallbox');
    await requestToken(harness, 'dashboard');
    expect(harness.run.usageRecorder.usageOf(user)).toMatchObject({ today: 1 });
    await harness.run.appliances.remove(harness.run.appliances.get('dashboard'));
    await requestToken(harness, 'wallbox');
    expect(harness.run.usageRecorder.usageOf(user)).toMatchObject({ last: null, today: 0 });
    await harness.restart();
    expect((await harness.run.store.usage.own()).size).toBe(1);
  });
});

describe('usage while the clock is wrong', () => {
  test('tokens that an appliance gets before the clock is confirmed count for their true day', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 30 * 24 * 3600 } });
    const { time } = harness;
    await harness.stop();
    const truth = time.wall;
    time.wall = truth - 3 * DAY;
    await harness.start();
    const { usageRecorder, referenceClock } = harness.run;
    usageRecorder.record(id, id);
    expect(usageOf(harness).lastToken).toBe(rfc3339(truth - 3 * DAY));
    // Without a confirmed time, a write of the connection leaves them out.
    expect(usageRecorder.pending(id).size).toBe(0);
    await time.pass(7 * HOUR);
    expect(usageRecorder.pending(id).size).toBe(0);
    referenceClock.recordPortalTime('home', truth + 7 * HOUR);
    expect(usageRecorder.usageOf(id).last).toBe(truth);
    // Status has it by the clock of the hub, which is still behind.
    expect(usageOf(harness).lastToken).toBe(rfc3339(truth - 3 * DAY));
    const counted = { last: truth, days: [{ day: utcDay(truth), count: 1 }] };
    expect([...usageRecorder.pending(id).values()]).toEqual([{ ...counted, connections: { [id]: counted } }]);
  });

  test('a clock that is set to another day does not move tokens that were counted by the confirmed time', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const { usageRecorder } = harness.run;
    for (let times = 0; times < 3; times++) await requestToken(harness, 'wallbox');
    const before = usageRecorder.usageOf(id);
    for (const jump of [-40 * DAY, 80 * DAY, -40 * DAY + HOUR]) {
      harness.time.wall += jump;
      expect(usageRecorder.usageOf(id)).toEqual(before);
    }
    await requestToken(harness, 'wallbox');
    expect(usageOf(harness)).toMatchObject({ today: 4, last14Days: 4 });
  });
});

describe('what is pointed out', () => {
  test('an appliance that has not asked yet, or for a week, is pointed out until it asks', async () => {
    const { harness } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 4 * 3600 } });
    expect(conditionsOf(harness)).toMatchObject([{ code: 'appliance_never_served', severity: 'info' }]);
    await requestToken(harness, 'wallbox');
    expect(conditionsOf(harness)).toEqual([]);
    const { lastToken } = usageOf(harness);
    await harness.time.pass(7 * DAY - MINUTE);
    expect(conditionsOf(harness)).toEqual([]);
    await harness.time.pass(2 * MINUTE);
    const silent = { code: 'appliance_silent', severity: 'info' };
    expect(conditionsOf(harness)).toMatchObject([silent]);
    const [{ since } = { since: null }] = conditionsOf(harness);
    expect(Math.abs(Date.parse(since ?? '') - Date.parse(lastToken ?? ''))).toBeLessThanOrEqual(SECOND);
    // After a start, the appliance first has the time to ask.
    await harness.restart();
    harness.run.referenceClock.recordPortalTime('home', harness.time.wall);
    expect(conditionsOf(harness)).toEqual([]);
    await harness.time.pass(4 * HOUR + MINUTE);
    expect(conditionsOf(harness)).toMatchObject([silent]);
    await requestToken(harness, 'wallbox');
    expect(conditionsOf(harness)).toEqual([]);
  });

  test('an appliance that asks more than a hundred times as often as its token lasts is pointed out that day', async () => {
    const { harness } = await BrokerHarness.startPaired();
    const id = harness.run.appliances.get('wallbox').id;
    const { time } = harness;
    time.suspend(DAY - (time.wall % DAY) + HOUR);
    await time.pass(HOUR);
    for (let times = 0; times < 190; times++) harness.run.usageRecorder.record(id, id);
    expect(conditionsOf(harness)).toEqual([]);
    for (let times = 0; times < 20; times++) harness.run.usageRecorder.record(id, id);
    expect(conditionsOf(harness)).toEqual([{ code: 'appliance_asks_often', severity: 'info', since: null }]);
    await time.pass(HOUR);
    expect(conditionsOf(harness)).toEqual([]);
  });

  test('what is pointed out causes no notice, and hides no other', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    const problem = { code: 'portal_unreachable', message: 'No answer', since: '2031-05-05T06:00:00Z' } as const;
    for (const unusualUsage of ['never_served', 'silent', 'asks_often'] as const) {
      const active = { ...harness.statusOf('wallbox'), unusualUsage };
      for (const status of [active, { ...active, state: 'retrying', problem } as const]) {
        const connections = connectionsOf([status]).map((one) => [{ id }, one] as const);
        const { conditions, subjects } = await collectNoticeInput(
          connections,
          [status],
          [],
          harness.run,
          'https://hub/',
        );
        expect(conditions.at(-1)).toMatchObject({ code: `appliance_${unusualUsage}`, severity: 'info' });
        expect(subjects.map(({ condition }) => condition?.code ?? null)).toEqual([status.problem?.code ?? null]);
      }
    }
  });

  test('nothing that depends on the time is pointed out while the clock is not confirmed', async () => {
    const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 30 * 24 * 3600 } });
    await harness.stop();
    harness.time.wall += 90 * DAY;
    await harness.start();
    for (let times = 0; times < 1000; times++) harness.run.usageRecorder.record(id, id);
    expect(conditionsOf(harness)).toEqual([]);
  });
});

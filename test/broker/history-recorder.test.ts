import { expect, test } from 'vitest';
import { HistoryRecorder } from '../../src/broker/reports/history-recorder.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import type { StoredHistoryEntry } from '../../src/core/reports/history.ts';
import { DAY, HOUR, MINUTE, SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';

/**
 * Records the history of the current run, in place of the broker.
 * @param isTimeKnown whether a portal has confirmed the time
 */
function startRecorder(harness: BrokerHarness, isTimeKnown = true) {
  const { store, scheduler, historyRecorder } = harness.run;
  Object.assign(historyRecorder, { record: () => undefined });
  const clock = new ReferenceClock(harness.environment);
  if (isTimeKnown) clock.recordPortalTime('home', harness.time.wall);
  const recorder = new HistoryRecorder(harness.environment, store.history, scheduler, clock);
  store.history.setSource(recorder);
  harness.listener = recorder.record;
  return { recorder, clock };
}

function texts(lines: readonly StoredHistoryEntry[]): string[] {
  return lines.map(({ kind, why, count }) => [kind, why, count].filter((part) => part !== null).join(' '));
}

/** Without the login that each test begins with. */
function later(lines: readonly StoredHistoryEntry[]): readonly StoredHistoryEntry[] {
  return lines.filter(({ kind }) => kind !== 'paired');
}

async function storedHistory(harness: BrokerHarness, id: string): Promise<string[]> {
  return texts(later(await harness.run.store.history.lines(id)));
}

test('the history of two days of refreshes has one line a day, and causes no writes of its own', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  await harness.time.pass(20 * MINUTE);
  const other = await harness.addPairedAppliance('heat-pump');
  const { recorder } = startRecorder(harness);
  let alone = 0;
  const add = harness.run.store.history.add.bind(harness.run.store);
  harness.run.store.history.add = (lines) => {
    alone += 1;
    return add(lines);
  };
  await harness.time.pass(2 * DAY);
  expect(alone).toBe(0);
  const both = [later(await recorder.historyOf(id)), later(await recorder.historyOf(other))];
  expect(both.map(({ length }) => length)).toEqual([3, 3]);
  expect(both.flat().reduce((sum, { count }) => sum + count, 0)).toBe(harness.refreshes);
  expect(await storedHistory(harness, id)).toHaveLength(3);
});

test('a power cut costs the history only its last line', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  startRecorder(harness);
  await harness.untilRefreshed();
  await harness.untilRefreshed();
  await harness.untilRefreshed();
  await harness.crash();
  await harness.start();
  expect(await storedHistory(harness, id)).toEqual(['refreshed 2']);
});

test('a login is in the history after a power cut that follows within seconds', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  await harness.time.pass(2 * SECOND);
  await harness.crash();
  await harness.start();
  expect(texts(await harness.run.store.history.lines(id))).toEqual(['paired 1']);
});

test('the history is written after an hour if nothing else is written, and when the hub stops', async () => {
  const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 10 * 3600 } });
  const { recorder } = startRecorder(harness);
  await harness.run.grants.refresh(id);
  await harness.time.pass(59 * MINUTE);
  expect(await storedHistory(harness, id)).toEqual([]);
  await harness.time.pass(2 * MINUTE);
  expect(await storedHistory(harness, id)).toEqual(['refreshed 1']);
  const now = harness.time.now();
  recorder.record({ kind: 'token_refused', connection: id, at: now });
  await recorder[Symbol.asyncDispose]();
  expect(await storedHistory(harness, id)).toEqual(['refreshed 1', 'token_refused 1']);
});

test('history lines wait until the clock is confirmed, and then have the true time', async () => {
  const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 10 * 3600 } });
  const truth = harness.time.wall;
  harness.time.wall = truth - 5 * DAY;
  const { recorder, clock } = startRecorder(harness, false);
  await harness.run.grants.refresh(id);
  await harness.time.pass(10 * MINUTE);
  await harness.run.grants.refresh(id);
  expect(await storedHistory(harness, id)).toEqual([]);
  harness.time.wall += 5 * DAY;
  clock.recordPortalTime('home', harness.time.wall);
  const first = truth - (truth % SECOND);
  expect(later(await recorder.historyOf(id))).toEqual([
    { kind: 'refreshed', why: null, first, last: first + 10 * MINUTE, count: 2 },
  ]);
  await harness.run.grants.refresh(id);
  expect(await storedHistory(harness, id)).toEqual(['refreshed 2']);
});

test('the history drops old lines and logs one failure while the store cannot be written for days', async () => {
  const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 10 * 3600 } });
  const { recorder } = startRecorder(harness);
  harness.run.store.history.setSource({ pending: () => [], markWritten: () => undefined });
  const add = harness.run.store.history.add.bind(harness.run.store);
  harness.run.store.history.add = () => Promise.reject(new Error('the disk is full'));
  for (let day = 0; day < 52; day++) {
    recorder.record({ kind: 'token_refused', connection: id, at: harness.time.now() });
    harness.time.skip(DAY);
    await harness.time.settle();
  }
  await harness.time.pass(HOUR);
  expect(harness.events.filter(({ event, level }) => event.startsWith('history') && level !== 'debug')).toHaveLength(1);
  expect(later(await recorder.historyOf(id))).toHaveLength(50);
  harness.run.store.history.add = add;
  await recorder[Symbol.asyncDispose]();
  expect(await storedHistory(harness, id)).toHaveLength(50);
});

test('an event during a history write is kept and added once, and none is written twice', async () => {
  const { harness, id } = await BrokerHarness.startPaired({ emulator: { tokenLifetime: 10 * 3600 } });
  const { recorder } = startRecorder(harness);
  const emitEvent = () => recorder.record({ kind: 'token_refused', connection: id, at: harness.time.now() });
  const add = harness.run.store.history.add.bind(harness.run.store);
  harness.run.store.history.add = async (lines) => {
    emitEvent();
    await add(lines);
  };
  emitEvent();
  await harness.time.pass(HOUR + MINUTE);
  expect(texts(later(await recorder.historyOf(id)))).toEqual(['token_refused 2']);
  harness.run.store.history.add = add;
  await recorder[Symbol.asyncDispose]();
  expect(await storedHistory(harness, id)).toEqual(['token_refused 2']);
});

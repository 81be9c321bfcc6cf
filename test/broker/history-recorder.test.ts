import { describe, expect, test } from 'vitest';
import { HistoryRecorder } from '../../src/broker/reports/history-recorder.ts';
import { ReferenceClock } from '../../src/broker/time/reference-clock.ts';
import type { StoredHistoryEntry } from '../../src/core/reports/history.ts';
import { BrokerHarness } from './broker-harness.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A book of what happens in this run of the home. @param isTimeKnown whether somebody has told the true time */
function keepBook(home: BrokerHarness, isTimeKnown = true) {
  const { store, scheduler } = home.run;
  const clock = new ReferenceClock(home.environment);
  if (isTimeKnown) clock.recordPortalTime(home.time.wall);
  const book = new HistoryRecorder(home.environment, store, scheduler, clock);
  store.setHistorySource(book);
  home.listener = book.record;
  return { book, clock };
}

function texts(lines: readonly StoredHistoryEntry[]): string[] {
  return lines.map(({ kind, why, count }) => [kind, why, count].filter((part) => part !== null).join(' '));
}

async function written(home: BrokerHarness, id: string): Promise<string[]> {
  return texts(await home.run.store.history(id));
}

test('the history of two days of refreshes has one line a day, and causes no writes of its own', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await home.time.pass(20 * MINUTE);
  const other = await home.addPairedAppliance('heat-pump');
  const { book } = keepBook(home);
  let alone = 0;
  const add = home.run.store.addHistory.bind(home.run.store);
  home.run.store.addHistory = (lines) => {
    alone += 1;
    return add(lines);
  };
  await home.time.pass(2 * DAY);
  expect(alone).toBe(0);
  const both = [await book.historyOf(id), await book.historyOf(other)];
  expect(both.map(({ length }) => length)).toEqual([3, 3]);
  expect(both.flat().reduce((sum, { count }) => sum + count, 0)).toBe(home.refreshes);
  expect(await written(home, id)).toHaveLength(3);
});

test('a power cut costs the history only its last line', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  keepBook(home);
  await home.untilRefreshed();
  await home.untilRefreshed();
  await home.untilRefreshed();
  await home.crash();
  await home.start();
  expect(await written(home, id)).toEqual(['refreshed 2']);
});

test('the history is written after an hour if nothing else is written, and when the hub stops', async () => {
  await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 10 * 3600 } });
  const id = await home.addPairedAppliance();
  const { book } = keepBook(home);
  await home.run.grants.refresh(id);
  await home.time.pass(59 * MINUTE);
  expect(await written(home, id)).toEqual([]);
  await home.time.pass(2 * MINUTE);
  expect(await written(home, id)).toEqual(['refreshed 1']);
  const at = home.time.now();
  book.record({ kind: 'token_refused', appliance: id, at });
  await book[Symbol.asyncDispose]();
  expect(await written(home, id)).toEqual(['refreshed 1', 'token_refused 1']);
});

describe('history while the clock is not confirmed', () => {
  test('history lines wait until the clock is confirmed, and then have the true time', async () => {
    await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 10 * 3600 } });
    const id = await home.addPairedAppliance();
    const truth = home.time.wall;
    home.time.wall = truth - 5 * DAY;
    const { book, clock } = keepBook(home, false);
    await home.run.grants.refresh(id);
    await home.time.pass(10 * MINUTE);
    await home.run.grants.refresh(id);
    expect(await written(home, id)).toEqual([]);
    home.time.wall += 5 * DAY;
    clock.recordPortalTime(home.time.wall);
    const first = truth - (truth % SECOND);
    expect(await book.historyOf(id)).toEqual([
      { kind: 'refreshed', why: null, first, last: first + 10 * MINUTE, count: 2 },
    ]);
    await home.run.grants.refresh(id);
    expect(await written(home, id)).toEqual(['refreshed 2']);
  });

  test('history lines are written after an hour even if the clock is not confirmed', async () => {
    await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 10 * 3600 } });
    const id = await home.addPairedAppliance();
    keepBook(home, false);
    await home.run.grants.refresh(id);
    await home.time.pass(HOUR + MINUTE);
    expect(await written(home, id)).toEqual(['refreshed 1']);
  });

  test('the history shows and writes nothing while the clock is in 1970', async () => {
    await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 10 * 3600 } });
    const id = await home.addPairedAppliance();
    home.time.wall = 7 * MINUTE;
    const { book } = keepBook(home, false);
    await home.portal.disconnect();
    await home.run.grants.refresh(id);
    await home.time.pass(3 * HOUR);
    expect(await book.historyOf(id)).toEqual([]);
    expect(await written(home, id)).toEqual([]);
    home.time.wall = Date.UTC(2031, 4, 6, 12);
    const [line] = await book.historyOf(id);
    expect(line).toMatchObject({ kind: 'refresh_failed', why: 'portal_unreachable' });
    expect(line?.first).toBeGreaterThan(Date.UTC(2031, 4, 6, 8));
    await book[Symbol.asyncDispose]();
    expect(await written(home, id)).toHaveLength(1);
  });
});

test('a history line from another boot keeps the wall time that it was recorded with', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const { book } = keepBook(home);
  const wall = home.time.wall - 3 * HOUR;
  book.record({ kind: 'token_refused', appliance: id, at: { boot: 'another', uptime: 5, wall } });
  expect((await book.historyOf(id)).map(({ first }) => Math.abs(first - wall) < 2 * SECOND)).toEqual([true]);
});

test('the history drops old lines and logs one failure while the store cannot be written for days', async () => {
  await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 10 * 3600 } });
  const id = await home.addPairedAppliance();
  const { book } = keepBook(home);
  home.run.store.setHistorySource({ pending: () => [], markWritten: () => undefined });
  const add = home.run.store.addHistory.bind(home.run.store);
  home.run.store.addHistory = () => Promise.reject(new Error('the disk is full'));
  for (let day = 0; day < 60; day++) {
    book.record({ kind: 'token_refused', appliance: id, at: home.time.now() });
    home.time.skip(DAY);
    await home.time.settle();
  }
  await home.time.pass(HOUR);
  expect(home.events.filter(({ event, level }) => event.startsWith('history') && level !== 'debug')).toHaveLength(1);
  expect(await book.historyOf(id)).toHaveLength(50);
  home.run.store.addHistory = add;
  await book[Symbol.asyncDispose]();
  expect(await home.run.store.history(id)).toHaveLength(50);
});

test('an event during a history write is kept and added once, and none is written twice', async () => {
  await using home = await BrokerHarness.start({ emulator: { tokenLifetime: 10 * 3600 } });
  const id = await home.addPairedAppliance();
  const { book } = keepBook(home);
  const happen = () => book.record({ kind: 'token_refused', appliance: id, at: home.time.now() });
  const add = home.run.store.addHistory.bind(home.run.store);
  home.run.store.addHistory = async (lines) => {
    happen();
    await add(lines);
  };
  happen();
  await home.time.pass(HOUR + MINUTE);
  expect(texts(await book.historyOf(id))).toEqual(['token_refused 2']);
  home.run.store.addHistory = add;
  await book[Symbol.asyncDispose]();
  expect(await written(home, id)).toEqual(['token_refused 2']);
});

test('the history shows its pending lines when the stored ones cannot be read', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const { book } = keepBook(home);
  home.run.store.history = () => Promise.reject(new Error('it is damaged'));
  await home.run.grants.refresh(id);
  expect(texts(await book.historyOf(id))).toEqual(['refreshed 1']);
});

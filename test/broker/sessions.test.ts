import { expect, test } from 'vitest';
import { Sessions } from '../../src/broker/sessions.ts';
import { Failure } from '../../src/core/failure.ts';
import type { Log } from '../../src/core/log.ts';
import { MOST_SESSIONS } from '../../src/core/session.ts';
import { systemRandom } from '../../src/system/random.ts';
import { FakeTime } from '../support/fake-time.ts';
import { rememberSecrets } from '../support/logs.ts';
import { Home } from './home.ts';

/** A home with two appliances, and its sessions on a store that may be made unwritable. */
async function start() {
  const home = await Home.start();
  const [wallbox, heater] = [(await home.add('wallbox')).appliance.id, (await home.add('heater')).appliance.id];
  const errors: string[] = [];
  const log: Log = { debug() {}, info() {}, warn() {}, error: (event) => errors.push(event) };
  const disk = { full: false };
  const written = async <Result>(write: () => Promise<Result>): Promise<Result> => {
    if (disk.full) throw new Failure('store_unwritable', 'the disk is full');
    return write();
  };
  const load = () =>
    Sessions.load(
      {
        sessions: () => home.run.store.sessions(),
        saveSession: (session) => written(() => home.run.store.saveSession(session)),
        endSession: (hash) => written(() => home.run.store.endSession(hash)),
      },
      { clock: new FakeTime(), random: systemRandom, log },
    );
  const begin = async (sessions: Sessions, appliance: string, device: string) => {
    const token = (await sessions.begin(appliance, device)).reveal();
    rememberSecrets([token]);
    return token;
  };
  return { home, wallbox, heater, errors, disk, load, begin };
}

test('a session is its appliance’s own, lasts across restarts, and ends when it is ended', async () => {
  const { home, wallbox, heater, load, begin } = await start();
  await using _ = home;
  const sessions = await load();
  const token = await begin(sessions, wallbox, 'flow-1');
  const others = await begin(sessions, heater, 'flow-2');
  for (const now of [sessions, await load()]) {
    expect(now.has(wallbox, token)).toBe(true);
    expect(now.has(heater, token)).toBe(false);
    expect(now.has(wallbox, `${token}x`)).toBe(false);
    expect(now.has(wallbox, '')).toBe(false);
  }
  expect(await sessions.end(heater, token)).toBe(false);
  expect(sessions.has(wallbox, token)).toBe(true);
  expect(await sessions.end(wallbox, token)).toBe(true);
  expect(await sessions.end(wallbox, token)).toBe(false);
  for (const now of [sessions, await load()]) {
    expect(now.has(wallbox, token)).toBe(false);
    expect(now.has(heater, others)).toBe(true);
  }
});

test('nothing in the store is a refresh token', async () => {
  const { home, wallbox, load, begin } = await start();
  await using _ = home;
  const token = await begin(await load(), wallbox, 'flow-1');
  expect(JSON.stringify(await home.run.store.sessions())).not.toContain(token);
});

test('one device flow has one session: a second answer to its poll replaces the first', async () => {
  const { home, wallbox, load, begin } = await start();
  await using _ = home;
  const sessions = await load();
  const first = await begin(sessions, wallbox, 'flow-1');
  const second = await begin(sessions, wallbox, 'flow-1');
  expect(sessions.has(wallbox, first)).toBe(false);
  expect(sessions.has(wallbox, second)).toBe(true);
});

test('of each appliance only the newest few are kept', async () => {
  const { home, wallbox, heater, load, begin } = await start();
  await using _ = home;
  const sessions = await load();
  const others = await begin(sessions, heater, 'flow');
  const tokens: string[] = [];
  for (let i = 0; i <= MOST_SESSIONS; i += 1) tokens.push(await begin(sessions, wallbox, `flow-${i}`));
  expect(tokens.map((token) => sessions.has(wallbox, token))).toEqual([false, ...Array(MOST_SESSIONS).fill(true)]);
  expect(sessions.has(heater, others)).toBe(true);
});

test('all sessions of an appliance end together', async () => {
  const { home, wallbox, heater, load, begin } = await start();
  await using _ = home;
  const sessions = await load();
  const [first, second] = [await begin(sessions, wallbox, 'flow-1'), await begin(sessions, wallbox, 'flow-2')];
  const others = await begin(sessions, heater, 'flow-3');
  await sessions.endAll(wallbox);
  for (const now of [sessions, await load()]) {
    expect([first, second].map((token) => now.has(wallbox, token))).toEqual([false, false]);
    expect(now.has(heater, others)).toBe(true);
  }
});

test('while the store can not be written they begin and end in memory, and are written down later', async () => {
  const { home, wallbox, heater, errors, disk, load, begin } = await start();
  await using _ = home;
  const sessions = await load();
  const before = await begin(sessions, wallbox, 'flow-1');
  disk.full = true;
  const token = await begin(sessions, wallbox, 'flow-2');
  const short = await begin(sessions, wallbox, 'flow-3');
  expect(await sessions.end(wallbox, before)).toBe(true);
  expect(await sessions.end(wallbox, short)).toBe(true);
  expect(errors).toContain('store could not be written');
  const good = (now: Sessions) => [before, token, short].map((one) => now.has(wallbox, one));
  expect(good(sessions)).toEqual([false, true, false]);
  expect(good(await load())).toEqual([true, false, false]);
  disk.full = false;
  await begin(sessions, heater, 'flow-4');
  for (const now of [sessions, await load()]) expect(good(now)).toEqual([false, true, false]);
});

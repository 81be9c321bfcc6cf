import { expect, test } from 'vitest';
import { Sessions } from '../../src/broker/appliances/sessions.ts';
import { MAX_SESSIONS } from '../../src/core/appliances/session.ts';
import { Failure } from '../../src/core/failure.ts';
import { systemRandom } from '../../src/system/random.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { logTo } from '../support/log-to.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';

/** A broker with two appliances, and sessions on a store that a test can make unwritable. */
async function start() {
  const harness = await BrokerHarness.start();
  const [wallbox, heater] = [
    (await harness.addAppliance('wallbox')).appliance.id,
    (await harness.addAppliance('heater')).appliance.id,
  ];
  const errors: string[] = [];
  const log = logTo((event, _fields, level) => level === 'error' && errors.push(event));
  const disk = { full: false };
  const written = async <Result>(write: () => Promise<Result>): Promise<Result> => {
    if (disk.full) throw new Failure('store_unwritable', 'the disk is full');
    return write();
  };
  const load = () =>
    Sessions.load(
      {
        sessions: {
          ...harness.run.store.sessions,
          save: (session) => written(() => harness.run.store.sessions.save(session)),
          end: (hash) => written(() => harness.run.store.sessions.end(hash)),
        },
      },
      harness.run.scheduler,
      { clock: harness.time, random: systemRandom, log },
    );
  const begin = async (sessions: Sessions, appliance: string, device: string, connection = appliance) => {
    const token = (await sessions.create(appliance, device, connection)).reveal();
    rememberSecrets([token]);
    return token;
  };
  return { harness, wallbox, heater, errors, disk, load, begin };
}

const has = (sessions: Sessions, appliance: string, token: string) => sessions.find(appliance, token) !== undefined;

test('a session belongs to one appliance, survives restarts, and ends when it is ended', async () => {
  const { wallbox, heater, load, begin } = await start();
  const sessions = await load();
  const token = await begin(sessions, wallbox, 'flow-1');
  const others = await begin(sessions, heater, 'flow-2');
  for (const now of [sessions, await load()]) {
    expect(has(now, wallbox, token)).toBe(true);
    expect(has(now, heater, token)).toBe(false);
    expect(has(now, wallbox, `${token}x`)).toBe(false);
    expect(has(now, wallbox, '')).toBe(false);
  }
  expect(await sessions.end(heater, token)).toBe('none');
  expect(has(sessions, wallbox, token)).toBe(true);
  expect(await sessions.end(wallbox, token)).toBe('ended');
  expect(await sessions.end(wallbox, token)).toBe('none');
  for (const now of [sessions, await load()]) {
    expect(has(now, wallbox, token)).toBe(false);
    expect(has(now, heater, others)).toBe(true);
  }
});

test('the store contains no refresh token of a session', async () => {
  const { harness, wallbox, load, begin } = await start();
  const token = await begin(await load(), wallbox, 'flow-1');
  expect(JSON.stringify(await harness.run.store.sessions.all())).not.toContain(token);
});

test("every poll of one device flow repeats its session's token until that session ends or the hub restarts", async () => {
  const { harness, wallbox, heater, disk, load, begin } = await start();
  const sessions = await load();
  const [first, again] = await Promise.all([begin(sessions, wallbox, 'flow-1'), begin(sessions, wallbox, 'flow-1')]);
  const writes = harness.run.store.changeCount;
  expect([again, await begin(sessions, wallbox, 'flow-1')]).toEqual([first, first]);
  expect(harness.run.store.changeCount).toBe(writes);
  expect(await begin(sessions, wallbox, 'flow-2')).not.toBe(first);
  expect(await begin(sessions, heater, 'flow-3')).not.toBe(first);
  await sessions.end(wallbox, first);
  const second = await begin(sessions, wallbox, 'flow-1');
  expect(has(sessions, wallbox, first)).toBe(false);
  expect(has(sessions, wallbox, second)).toBe(true);
  const restarted = await load();
  const third = await begin(restarted, wallbox, 'flow-1');
  expect([second, third].map((token) => has(restarted, wallbox, token))).toEqual([false, true]);
  disk.full = true;
  const unwritten = await load();
  const fourth = await begin(unwritten, wallbox, 'flow-1');
  expect([third, fourth].map((token) => has(unwritten, wallbox, token))).toEqual([false, true]);
});

test('only the newest few sessions of each appliance are kept', async () => {
  const { wallbox, heater, load, begin } = await start();
  const sessions = await load();
  const others = await begin(sessions, heater, 'flow');
  const tokens: string[] = [];
  for (let i = 0; i <= MAX_SESSIONS; i += 1) tokens.push(await begin(sessions, wallbox, `flow-${i}`));
  expect(tokens.map((token) => has(sessions, wallbox, token))).toEqual([false, ...Array(MAX_SESSIONS).fill(true)]);
  expect(has(sessions, heater, others)).toBe(true);
});

test('the sessions of an appliance of several connections count and end by their connection', async () => {
  const { harness, load, begin } = await start();
  const [a, b] = [await harness.addConnection('a'), await harness.addConnection('b')];
  const choice = { connections: ['a', 'b'], scope: null, portal: null };
  const hass = (await harness.run.appliances.add('hass', choice)).appliance;
  const sessions = await load();
  const older = { hash: sha256('older'), appliance: hass.id, device: 'older', begun: harness.time.now() };
  await harness.run.store.sessions.save(older);
  const ofA = await begin(sessions, hass.id, 'flow-a', a.id);
  for (let i = 0; i < MAX_SESSIONS; i += 1) await begin(sessions, hass.id, `flow-${i}`, b.id);
  for (const now of [sessions, await load()]) expect(now.find(hass.id, ofA)).toMatchObject({ connection: a.id });
  await sessions.endFor(hass, b.id);
  for (const now of [sessions, await load()])
    expect([ofA, 'older'].map((one) => has(now, hass.id, one))).toEqual([true, true]);
  expect(await harness.run.store.sessions.all()).toHaveLength(2);
  // An older session is known to be one of the connection only if there is no other.
  await sessions.endFor({ ...hass, more: [] }, a.id);
  expect(await harness.run.store.sessions.all()).toEqual([]);
});

test('all sessions of an appliance end together', async () => {
  const { wallbox, heater, load, begin } = await start();
  const sessions = await load();
  const [first, second] = [await begin(sessions, wallbox, 'flow-1'), await begin(sessions, wallbox, 'flow-2')];
  const others = await begin(sessions, heater, 'flow-3');
  await sessions.endAll(wallbox);
  for (const now of [sessions, await load()]) {
    expect([first, second].map((token) => has(now, wallbox, token))).toEqual([false, false]);
    expect(has(now, heater, others)).toBe(true);
  }
});

test.each(['by itself', 'with the next one', 'at the end of the run'])(
  'sessions begin and end in memory while the store is unwritable, and are saved later: %s',
  async (how) => {
    const { harness, wallbox, heater, errors, disk, load, begin } = await start();
    const sessions = await load();
    const before = await begin(sessions, wallbox, 'flow-1');
    disk.full = true;
    const token = await begin(sessions, wallbox, 'flow-2');
    const short = await begin(sessions, wallbox, 'flow-3');
    expect(await sessions.end(wallbox, before)).toBe('unwritten');
    expect(await sessions.end(wallbox, short)).toBe('unwritten');
    expect(await sessions.end(heater, before)).toBe('none');
    expect(errors).toContain('store_unwritable');
    const good = (now: Sessions) => [before, token, short].map((one) => has(now, wallbox, one));
    expect(good(sessions)).toEqual([false, true, false]);
    expect(good(await load())).toEqual([true, false, false]);
    // The hub retries the write, but logs the error once.
    await harness.time.pass(60_000);
    expect(errors).toHaveLength(1);
    expect(await sessions.end(wallbox, before)).toBe('unwritten');
    disk.full = false;
    if (how === 'by itself') await harness.time.pass(10_000);
    if (how === 'with the next one') await begin(sessions, heater, 'flow-4');
    if (how === 'at the end of the run') await sessions[Symbol.asyncDispose]();
    expect(good(sessions)).toEqual([false, true, false]);
    await expect.poll(async () => good(await load())).toEqual([false, true, false]);
    expect(await sessions.end(wallbox, before)).toBe('none');
  },
);

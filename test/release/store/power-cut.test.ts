import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { jweSealing, type Sealing } from '../../../src/store/keys/sealing.ts';
import { openStore } from '../../../src/store/sqlite/open-store.ts';
import { systemTimers } from '../../../src/system/clock.ts';
import { canTraceSystemCalls, ONE_POOL_THREAD } from '../../chaos/system-calls.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { IS_LONG_FORM } from '../../support/long.ts';
import { MAIN } from '../../support/program.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { memoryStateFolder } from '../../support/state-folder.ts';
import { type DiskEvent, parseDiskEvents, SimulatedDisk } from './simulated-disk.ts';

const DEADLINE = scaleDeadline(IS_LONG_FORM ? 120_000 : 20_000);
const CUTS = IS_LONG_FORM ? 5000 : 500;
const KEYS = [jweSealing(new Uint8Array(32)), jweSealing(new Uint8Array(32).fill(1))] as const;

/**
 * Saves numbered settings, in pairs, one after another and several at once, and says which are confirmed. In between, and
 * right after a failure, it does everything else that writes to the database; then it opens the store again.
 */
const SCRIPT = `
  import { openSync, writeSync } from 'node:fs';
  import { openStore } from ${JSON.stringify(join(dirname(MAIN), 'store/sqlite/open-store.js'))};
  import { jweSealing } from ${JSON.stringify(join(dirname(MAIN), 'store/keys/sealing.js'))};
  const messages = openSync(process.argv[2], 'w');
  const say = (message) => writeSync(messages, message);
  const keys = [0, 1].map((fill) => jweSealing(new Uint8Array(32).fill(fill)));
  let store = await openStore(process.argv[1], keys[0], Date.now);
  say('opened');
  let number = 0;
  let hasFailed = false;
  async function save() {
    const own = ++number;
    const name = 'name-' + (own % 7);
    const size = own % 19 === 0 ? 9000 : (own * 7919) % 1500;
    try {
      await store.settings.save({ [name]: own + 'x'.repeat(size), [name + '-twin']: String(own) });
      say('confirmed ' + own);
    } catch {
      hasFailed = true;
    }
  }
  async function reseal() {
    const key = keys.findIndex((one) => one !== store.sealing);
    say('resealing');
    await store.reseal(keys[key]);
    say('resealed ' + key);
  }
  async function reopen() {
    const { sealing } = store;
    await store[Symbol.asyncDispose]();
    store = await openStore(process.argv[1], sealing, Date.now);
  }
  const works = [reseal, () => store.checkpoint(), reseal, () => store.serialize(), () => store.compact(), reopen];
  for (let round = 1; round <= Number(process.argv[3]); round++) {
    await Promise.all(Array.from({ length: round % 4 === 0 ? 5 : 1 }, save));
    if (!hasFailed && round % 25 !== 0) continue;
    hasFailed = false;
    const work = works.shift();
    works.push(work);
    await work().catch(() => undefined);
  }
  process.kill(process.pid, 'SIGKILL');`;

/** @param failing the calls that fail, for strace */
function traceScript(folder: string, state: string, failing: readonly string[], rounds = 240): DiskEvent[] {
  const [log, messages] = [join(folder, 'calls'), join(folder, 'messages')];
  const calls = 'openat,unlink,link,rename,write,pwrite64,ftruncate,fsync,fdatasync';
  const files = ['', '/latchkey.db', '/latchkey.db-wal', '/latchkey.db-wal.kept', '/latchkey.db-journal'].map(
    (file) => `${state}${file}`,
  );
  const only = [...files, messages].flatMap((path) => ['-P', path]);
  const options = ['-f', '-y', '-xx', '-s', '1000000', '-o', log, '-e', `trace=${calls}`, '-e', 'signal=none', ...only];
  for (const fault of failing) options.push('-e', `inject=${fault}`);
  const script = [process.execPath, '--input-type=module', '-e', SCRIPT, state, messages, String(rounds)];
  const { stderr } = spawnSync('/usr/bin/strace', [...options, ...script], {
    env: { ...process.env, ...ONE_POOL_THREAD },
  });
  expect(stderr.toString()).toBe('');
  return parseDiskEvents(readFileSync(log, 'utf8'), messages);
}

/** What the script has confirmed. */
class Confirmed {
  /** The highest number of each setting. */
  readonly numbers = new Map<string, number>();
  /** The keys of which one opens the store. */
  keys: readonly [Sealing, ...Sealing[]] = [KEYS[0]];

  add(message: string): void {
    const [what, number] = message.split(' ');
    if (what === 'opened') return;
    if (what === 'resealing') this.keys = KEYS;
    else if (what === 'resealed') this.keys = [number === '0' ? KEYS[0] : KEYS[1]];
    else {
      const name = `name-${Number(number) % 7}`;
      this.numbers.set(name, Math.max(this.numbers.get(name) ?? 0, Number(number)));
    }
  }
}

/** Opens a store like a hub. @returns what is wrong with it */
async function problemsOf(directory: string, confirmed: Confirmed): Promise<string[]> {
  const [key, ...others] = confirmed.keys;
  await using store = await openStore(directory, key, () => 0, systemTimers, others);
  const problems = [store.recoverySummary, store.writeProblem].filter((problem) => problem !== null);
  for (const [name, least] of confirmed.numbers) {
    const [value, twin] = [await store.settings.get(name), await store.settings.get(`${name}-twin`)];
    const saved = Number.parseInt(value ?? '0', 10);
    if (saved < least) problems.push(`${name} is ${saved} although ${least} was confirmed`);
    if (String(saved) !== twin) problems.push(`${name} is ${saved}, but its twin is ${twin}`);
  }
  return problems;
}

/** Cuts the power at random events. @returns what is wrong with the stores that remain, and the numbers at the end */
async function cutPower(folder: string, state: string, events: readonly DiskEvent[]) {
  const random = new SeededRandom(1);
  const emptied = events.flatMap(({ kind }, index) => (kind === 'truncate' ? [index] : []));
  const messages = events.flatMap(({ kind }, index) => (kind === 'message' ? [index] : []));
  const [opened = 0] = messages;
  // Anywhere, right after a confirmation, and while the WAL is moved to the database.
  const places = [
    () => random.whole(opened, events.length),
    () => random.pick(messages) + 1,
    () => Math.max(opened, random.pick(emptied) + random.whole(-50, 50)),
  ];
  const cuts = Array.from({ length: CUTS }, () => random.pick(places)()).sort((a, b) => a - b);
  const disk = new SimulatedDisk(state);
  const confirmed = new Confirmed();
  const problems: string[] = [];
  for (let index = 0; index <= events.length; index++) {
    for (; (cuts[0] ?? Number.POSITIVE_INFINITY) <= index; cuts.shift()) {
      const image = join(folder, 'image');
      mkdirSync(image, { mode: 0o700 });
      for (const [path, bytes] of disk.afterPowerCut(random)) writeFileSync(join(image, basename(path)), bytes);
      // One turn of the event loop must not take seconds.
      await setImmediate();
      const found = await problemsOf(image, confirmed).catch((error) => [String(error)]);
      problems.push(...found.map((problem) => `cut before event ${index}: ${problem}`));
      rmSync(image, { recursive: true });
    }
    const event = events[index];
    if (event === undefined) break;
    disk.apply(event, index);
    if (event.kind === 'message') confirmed.add(event.text);
  }
  // The trace has everything that was written.
  for (const [path, bytes] of disk.current()) expect(readFileSync(path).equals(bytes), path).toBe(true);
  return { problems, numbers: confirmed.numbers };
}

function makeStateDirectory(folder: string): string {
  const state = join(folder, 'state');
  mkdirSync(state, { mode: 0o700 });
  return state;
}

describe.skipIf(!canTraceSystemCalls())('power cuts', () => {
  test.each([
    ['a disk without faults', []],
    ['a disk that fails every 17th sync', ['fdatasync:error=EIO:when=9+17']],
    // Two at each checkpoint: of the database, and of the WAL.
    ['a disk that fails every 3rd truncation', ['ftruncate:error=EIO:when=3+3']],
  ])(
    'after a power cut the store is sound and has everything that was confirmed: %s',
    async (_disk, failing) => {
      using folder = memoryStateFolder();
      const state = makeStateDirectory(folder.path);
      const { problems, numbers } = await cutPower(folder.path, state, traceScript(folder.path, state, failing));
      expect(problems).toEqual([]);
      expect(numbers.size).toBe(7);
    },
    DEADLINE,
  );

  test.each([
    ['which is synced then', false],
    ['which can not be synced then either', true],
  ])(
    'the store loses nothing if it is closed after a failed sync of the database, %s',
    async (_then, failsAtClose) => {
      using sound = memoryStateFolder();
      const events = traceScript(sound.path, makeStateDirectory(sound.path), []);
      const callsOf = (call: string) =>
        events.filter((event) => event.kind === 'sync').filter((sync) => sync.call === call);
      const first = callsOf('fdatasync').find(({ path }) => path.endsWith('latchkey.db'));
      const untilFirst = (call: string) => callsOf(call).filter(({ began }) => began <= (first?.began ?? 0)).length;
      using folder = memoryStateFolder();
      const state = makeStateDirectory(folder.path);
      const failing = [`fdatasync:error=EIO:when=${untilFirst('fdatasync')}+`];
      // strace counts for each thread: one of these calls, for the directory, is in the thread pool.
      if (failsAtClose) failing.push(`fsync:error=EIO:when=${untilFirst('fsync')}+`);
      const { problems, numbers } = await cutPower(folder.path, state, traceScript(folder.path, state, failing, 40));
      expect(problems).toEqual([]);
      expect(numbers.size).toBe(7);
    },
    DEADLINE,
  );
});

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../src/core/failure.ts';
import { fetchPage } from '../reliability/fleet.ts';
import { eventually, stateParameterOf } from '../support/hub-process.ts';
import { isRunning } from '../support/processes.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { ChaosHarness } from './chaos-harness.ts';
import {
  type Experiment,
  type ExperimentOptions,
  type ExperimentResult,
  mergeResults,
  prefixFigures,
} from './experiment.ts';
import { readStoredGrant, type StoredGrantRecord } from './stored-grant.ts';
import { canTraceSystemCalls, killBeforeSystemCall, type SystemCall, traceSystemCalls } from './system-calls.ts';

const NAME = 'wallbox';
/** Boundaries of one walk: far more than there are. */
const MOST = 60;
/** Where SQLite writes. */
const FILES = ['latchkey.db', 'latchkey.db-wal', 'latchkey.db-journal'];

/** A kind of call that is stepped through. */
interface Calls {
  readonly calls: readonly string[];
  /** Only on the store's files; else wherever the daemon makes them. */
  readonly onStore: boolean;
}

const WRITES: readonly Calls[] = [
  { calls: ['pwrite64'], onStore: true },
  { calls: ['fsync'], onStore: true },
];
/** What SQLite does to its files now and then; hit, each of them is stepped through as well. */
const RARE = [
  'fdatasync',
  'ftruncate',
  'unlink',
  'unlinkat',
  'rename',
  'renameat2',
  'pwritev',
  'pwritev2',
  'fallocate',
];
/** Between the attempt's commit and the answer's: before the connection stands, and before anything is sent on it. */
const CONNECT: Calls = { calls: ['connect'], onStore: false };
const SEND: Calls = { calls: ['writev'], onStore: false };
const SENDS: readonly Calls[] = [CONNECT, SEND];
/** After everything was written: the log's line and the answer to who asked. */
const AFTERWARDS: Calls = { calls: ['write'], onStore: false };

/** What is cut short at each of its boundaries. */
interface Work {
  readonly name: string;
  /** Only boundaries on these files of the store; else on all of them, and those of sends. */
  readonly files?: readonly string[];
  /** Brings the household to where it begins, and gives what does it: it resolves once the hub says that it is done. */
  prepare(house: ChaosHarness): Promise<() => Promise<void>>;
  /** Ends what was cut short, as a person or time would. */
  finish(house: ChaosHarness): Promise<void>;
}

export const experiment: Experiment = {
  name: 'Write boundaries',
  promise:
    'Killed before any system call of a refresh or of a pairing’s end, the hub has the old or the new generation on disk, never none, and never uses both; nothing is sent or answered before what was written is synced.',
  async run(scale, random) {
    if (!canTraceSystemCalls())
      throw new Error('strace is needed, and may not look into other processes or is not installed');
    const walks = scale.long
      ? [walk(scale, refresh('hub')), walk(scale, pairing()), walk(scale, writeBack())]
      : [
          sample(refresh('a person'), [...WRITES, ...SENDS, AFTERWARDS], random),
          sample(pairing(), [...WRITES, SEND, AFTERWARDS], random),
        ];
    return mergeResults(await Promise.all(walks));
  },
};

/**
 * Kills before the first write to the store and the last one, before the first sync and the last one, before the last of what
 * comes afterwards, and before one call of each other kind. Some find the new generation written, whatever the others find.
 */
async function sample(work: Work, groups: readonly Calls[], random: SeededRandom): Promise<ExperimentResult> {
  await using house = await startHouse();
  const stepping = new Stepping(house, work);
  await stepping.trace();
  for (const group of groups) {
    const last = stepping.counted(group);
    const some = group === AFTERWARDS ? [last] : [random.whole(1, last)];
    for (const when of WRITES.includes(group) ? [1, last] : some) {
      // A piece of work may have a call less than the one that was traced.
      let before = when;
      while (before > 0 && !(await stepping.killAt(group, before))) before -= 1;
    }
  }
  return stepping.conclude();
}

/** Kills before each call. */
async function walk(scale: ExperimentOptions, work: Work): Promise<ExperimentResult> {
  await using house = await startHouse();
  const stepping = new Stepping(house, work);
  if (work.files === undefined) await stepping.trace();
  const groups = work.files === undefined ? [...WRITES, ...SENDS, AFTERWARDS] : [...WRITES];
  const rare = { calls: RARE, onStore: true };
  if (await stepping.killAt(rare, 1)) groups.push(...RARE.map((call) => ({ calls: [call], onStore: true })));
  for (const group of groups) {
    for (let when = 1; await stepping.killAt(group, when); when++) {
      scale.progress(`${work.name}: killed before ${group.calls} ${when}`);
      if (when >= MOST) throw new Error(`${work.name} has more than ${MOST} calls of ${group.calls}`);
    }
  }
  return stepping.conclude();
}

async function startHouse(): Promise<ChaosHarness> {
  await using parts = new AsyncDisposableStack();
  const house = parts.use(await ChaosHarness.start([NAME], ['--refresh-grace-time', '1h']));
  await house.pairAppliances([NAME]);
  parts.move();
  return house;
}

/** One hub that is killed at one boundary after the other. */
class Stepping {
  readonly #house: ChaosHarness;
  readonly #work: Work;
  readonly #broken: string[] = [];
  #syncs = 0;
  kills = 0;
  readonly #left = { old: 0, 'old, in doubt': 0, new: 0 };
  readonly #calls = new Map<string, number>();
  /** Those of the work that went well. */
  #traced: readonly SystemCall[] = [];

  constructor(house: ChaosHarness, work: Work) {
    this.#house = house;
    this.#work = work;
  }

  /**
   * Does the work once, unharmed, and looks at the order of its calls: a power cut loses what is written and not synced,
   * so nothing may be sent, and nobody answered, before it is.
   */
  async trace(): Promise<void> {
    const { hub } = this.#house;
    const work = await this.#work.prepare(this.#house);
    const kinds = ['pwrite64', 'fsync', 'fdatasync', 'connect', 'writev', 'write'];
    this.#traced = await traceSystemCalls(hub.pid, kinds, work);
    const unsynced = new Set<string>();
    for (const { name, on } of this.#traced) {
      const onStore = this.#isStore(on);
      if (onStore && name === 'pwrite64') unsynced.add(on);
      if (onStore && name.endsWith('sync')) {
        unsynced.delete(on);
        this.#syncs += 1;
      }
      if (!on.startsWith('socket:') || unsynced.size === 0) continue;
      this.#broken.push(`${this.#work.name}: ${name} on a socket while something written was not synced yet`);
    }
  }

  /** How many calls of a kind there were when the work went well. */
  counted({ calls, onStore }: Calls): number {
    return this.#traced.filter(({ name, on }) => calls.includes(name) && (!onStore || this.#isStore(on))).length;
  }

  /** @returns whether it was killed: false once the work has no such boundary any more */
  async killAt({ calls, onStore }: Calls, when: number): Promise<boolean> {
    const { hub } = this.#house;
    const state = join(hub.directory, 'state');
    const files = (this.#work.files ?? FILES).map((name) => join(state, name));
    const work = await this.#work.prepare(this.#house);
    // Copied from under a hub that may just be moving its journal to the database: one of the two is of before then.
    const before = await eventually(() => readStoredGrant(state, NAME), 10);
    const tokensBefore = await this.#tokens();
    const { pid } = hub;
    let done = false;
    {
      await using _watch = await killBeforeSystemCall(pid, calls, when, onStore ? files : []);
      done = await work().then(
        () => true,
        () => false,
      );
      // What comes after the answer comes at once.
      if (done) await sleep(200);
      else await eventually(async () => !isRunning(pid), 5).catch(() => undefined);
    }
    if (done && isRunning(pid)) return false;
    await eventually(async () => !isRunning(pid), 10);
    this.kills += 1;
    if (calls.length === 1) this.#calls.set(calls.join(), Math.max(when, this.#calls.get(calls.join()) ?? 0));
    const where = `${this.#work.name}, before ${calls} ${when}`;
    const left = await readStoredGrant(state, NAME);
    await hub.kill();
    await this.#judgeLeft(where, before, left, tokensBefore);
    await hub.launch();
    await this.#judgeStarted(where, left);
    await this.#work.finish(this.#house).catch((error: unknown) => {
      this.#broken.push(`${where}: it did not come to an end (${messageOf(error)})`);
    });
    await this.#judgeUse(where, left, before, tokensBefore);
    return true;
  }

  conclude(): ExperimentResult {
    const figures = prefixFigures(this.#work.name, {
      'boundaries killed at': this.kills,
      'calls stepped through': [...this.#calls].map(([call, count]) => `${call} ${count}`).join(', '),
      ...(this.#syncs > 0 && { 'syncs of one that went well, each before what follows from it': this.#syncs }),
      'left the old generation': this.#left.old,
      'left the old generation, in doubt': this.#left['old, in doubt'],
      'left the new generation': this.#left.new,
      'left neither': this.kills - this.#left.old - this.#left['old, in doubt'] - this.#left.new,
    });
    return { figures, broken: this.#broken };
  }

  #isStore(file: string): boolean {
    return FILES.some((name) => file === join(this.#house.hub.directory, 'state', name));
  }

  /** On disk is the old generation or the new one, and nothing was sent that was not written ahead. */
  async #judgeLeft(
    where: string,
    before: StoredGrantRecord | null,
    left: StoredGrantRecord | null,
    tokensBefore: readonly string[],
  ) {
    if (left === null || before === null || !left.hasTokens)
      return void this.#broken.push(`${where}: the grant is gone`);
    const isNew = left.generation > before.generation;
    if (left.generation !== before.generation && !(isNew && this.#plausible(before, left))) {
      this.#broken.push(`${where}: generation ${left.generation} is on disk after ${before.generation}`);
    }
    this.#left[isNew ? 'new' : left.attempt === null && left.pairing !== 'exchanging' ? 'old' : 'old, in doubt'] += 1;
    const sent = (await this.#tokens()).slice(tokensBefore.length);
    if (isNew || sent.length === 0) return;
    const last = createHash('sha256')
      .update(sent.at(-1) ?? '')
      .digest('base64url');
    if (left.attempt !== last && left.pairing !== 'exchanging') {
      this.#broken.push(`${where}: a token or a code was sent that had not been written ahead`);
    }
  }

  /** Some work takes many refreshes; else there is one generation to the next. */
  #plausible(before: StoredGrantRecord, left: StoredGrantRecord): boolean {
    return this.#work.name === WRITE_BACK || left.generation === before.generation + 1;
  }

  /** What was cut short is told, and nothing else. */
  async #judgeStarted(where: string, left: StoredGrantRecord | null): Promise<void> {
    const { hub } = this.#house;
    const { state, problem } = await hub.appliance(NAME);
    const cutShort = left !== null && left.attempt !== null;
    // The retry may be over before anybody can ask on a busy machine; what the log says stays.
    const told = (await readFile(hub.log, 'utf8')).includes('"refresh_interrupted"');
    if (told !== cutShort)
      this.#broken.push(`${where}: the log ${told ? 'tells' : 'does not tell'} of a refresh cut short`);
    if (state === 'active' || (cutShort && state === 'retrying' && problem?.code === 'answer_lost')) return;
    this.#broken.push(`${where}: it is ${state} (${problem?.message})`);
  }

  /** A token whose successor was on disk is never used again, and no code is ever sent twice. */
  async #judgeUse(
    where: string,
    left: StoredGrantRecord | null,
    before: StoredGrantRecord | null,
    tokensBefore: readonly string[],
  ): Promise<void> {
    const sends = await this.#house.sends('refresh_token');
    const tokens = sends.map(({ token }) => token);
    const spent = sends[tokensBefore.length]?.token;
    const isNew = (left?.generation ?? 0) > (before?.generation ?? 0);
    if (isNew && this.#work.name !== WRITE_BACK && spent !== undefined) {
      const uses = tokens.filter((token) => token === spent).length;
      if (uses > 1) this.#broken.push(`${where}: a token was used again although its successor was on disk`);
    }
    for (const [index, { successor }] of sends.entries()) {
      const used = successor === null ? -1 : tokens.indexOf(successor, index);
      if (used >= 0 && tokens.indexOf(tokens[index] ?? '', used) >= 0) {
        this.#broken.push(`${where}: a token was used again after its successor`);
      }
    }
    const codes = (await this.#house.sends('authorization_code')).map(({ token }) => token);
    if (new Set(codes).size < codes.length) this.#broken.push(`${where}: a code was sent twice`);
  }

  async #tokens(): Promise<readonly string[]> {
    return (await this.#house.sends('refresh_token')).map(({ token }) => token);
  }
}

/** @param by who tries again after a doubt */
function refresh(by: 'hub' | 'a person'): Work {
  return {
    name: 'refresh',
    async prepare({ hub }) {
      return () => refreshed(hub);
    },
    async finish({ hub }) {
      if (by === 'hub') await hub.until(NAME, ({ state }) => state === 'active', 20);
      await refreshed(hub);
    },
  };
}

const WRITE_BACK = 'refresh with the journal written back';
/** Refreshes after which SQLite has written its journal back: some pages each, and the journal holds 64. */
const ENOUGH = 50;

/** Refreshes until SQLite writes its journal back to the database, and the boundaries of that. */
function writeBack(): Work {
  return {
    name: WRITE_BACK,
    files: ['latchkey.db'],
    async prepare({ hub }) {
      return async () => {
        for (let count = 0; count < ENOUGH; count++) await refreshed(hub);
      };
    },
    finish: ({ hub }) => refreshed(hub),
  };
}

/** Pairs an appliance anew that has a grant: from the login on. */
function pairing(): Work {
  let location = '';
  let link = '';
  const logIn = async ({ portal }: ChaosHarness, to: string) => {
    link = to;
    ({ location } = await portal.login({ state: stateParameterOf(link), user: NAME }));
  };
  const bring = async () => {
    if (!(await fetchPage(location)).includes('is connected')) throw new Error('it is not connected');
  };
  return {
    name: 'pairing',
    async prepare(house) {
      await logIn(house, (await house.hub.beginPairing(NAME)).href);
      return bring;
    },
    async finish(house) {
      // The person reloads the page that the login ended on.
      await fetchPage(location);
      const { authorize_url } = await house.hub.until(NAME, (status) => status.authorize_url !== link);
      if (authorize_url === undefined) return;
      await logIn(house, authorize_url);
      await bring();
      await refreshed(house.hub);
    },
  };
}

async function refreshed(hub: ChaosHarness['hub']): Promise<void> {
  const { state, problem } = await hub.ask((control) => control.refresh(NAME));
  if (state !== 'active') throw new Error(`it is ${state}: ${problem?.message}`);
}

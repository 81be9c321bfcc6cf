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
import {
  canTraceSystemCalls,
  killBeforeSystemCall,
  ONE_POOL_THREAD,
  type SystemCall,
  traceSystemCalls,
} from './system-calls.ts';

const NAME = 'wallbox';
/** More boundaries than this indicate an endless walk. */
const MAX_BOUNDARIES = 60;
/** The files that SQLite writes. */
const FILES = ['latchkey.db', 'latchkey.db-wal', 'latchkey.db-journal'];

/** A kind of system call. The hub is killed before each one. */
interface Calls {
  readonly calls: readonly string[];
  /** Whether only calls on the store's files count. */
  readonly onStore: boolean;
}

const WRITES: readonly Calls[] = [
  { calls: ['pwrite64'], onStore: true },
  { calls: ['fdatasync'], onStore: true },
];
/** Rare calls of SQLite on its files. If one occurs, all of them are tested as well. */
const RARE = ['fsync', 'ftruncate', 'unlink', 'unlinkat', 'rename', 'renameat2', 'pwritev', 'pwritev2', 'fallocate'];
/**
 * Between the commits of the attempt and of its result: before the connection is open, and before anything is sent on
 * it.
 */
const CONNECT: Calls = { calls: ['connect'], onStore: false };
const SEND: Calls = { calls: ['writev'], onStore: false };
const SENDS: readonly Calls[] = [CONNECT, SEND];
/** After everything is written: the line in the log, and the response to the client. */
const AFTERWARDS: Calls = { calls: ['write'], onStore: false };

/** Work that is interrupted at each of its boundaries. */
interface Work {
  readonly name: string;
  /** Only boundaries on these files of the store; by default on all of them, and at sends. */
  readonly files?: readonly string[];
  /** Prepares the work. @returns a function that does it, and resolves when the hub has reported success */
  prepare(home: ChaosHarness): Promise<() => Promise<void>>;
  /** Completes interrupted work, as a person or the hub's retry would. */
  finish(home: ChaosHarness): Promise<void>;
}

export const experiment: Experiment = {
  name: 'Write boundaries',
  promise:
    'If the hub is killed before any system call of a refresh or of a pairing’s end, it has the old or the new generation on disk, never none, and never uses both. It sends no request and no response before its writes are synced.',
  async run(scale, random) {
    if (!canTraceSystemCalls()) throw new Error('strace is not installed, or may not trace other processes');
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
 * Kills before the first and the last write to the store, before the first and the last sync, before the last call
 * afterwards, and before one call of each other kind. This sample always includes kills that leave the new generation.
 */
async function sample(work: Work, groups: readonly Calls[], random: SeededRandom): Promise<ExperimentResult> {
  await using home = await startHome();
  const stepping = new Stepping(home, work);
  await stepping.trace();
  for (const group of groups) {
    const last = stepping.countCalls(group);
    const some = group === AFTERWARDS ? [last] : [random.whole(1, last)];
    for (const when of WRITES.includes(group) ? [1, last] : some) {
      // The work may make fewer calls than when it was traced.
      let before = when;
      while (before > 0 && !(await stepping.killAt(group, before))) before -= 1;
    }
  }
  return stepping.conclude();
}

/** Kills before each call. */
async function walk(scale: ExperimentOptions, work: Work): Promise<ExperimentResult> {
  await using home = await startHome();
  const stepping = new Stepping(home, work);
  if (work.files === undefined) await stepping.trace();
  const groups = work.files === undefined ? [...WRITES, ...SENDS, AFTERWARDS] : [...WRITES];
  const rare = { calls: RARE, onStore: true };
  if (await stepping.killAt(rare, 1)) groups.push(...RARE.map((call) => ({ calls: [call], onStore: true })));
  for (const group of groups) {
    for (let when = 1; await stepping.killAt(group, when); when++) {
      scale.progress(`${work.name}: killed before ${group.calls} ${when}`);
      if (when >= MAX_BOUNDARIES)
        throw new Error(`${work.name} has more than ${MAX_BOUNDARIES} calls of ${group.calls}`);
    }
  }
  return stepping.conclude();
}

async function startHome(): Promise<ChaosHarness> {
  await using parts = new AsyncDisposableStack();
  const home = parts.use(await ChaosHarness.start([NAME], ['--refresh-grace-time', '1h'], { env: ONE_POOL_THREAD }));
  await home.pairAppliances([NAME]);
  parts.move();
  return home;
}

/** A hub that is killed at one boundary after another. */
class Stepping {
  readonly #home: ChaosHarness;
  readonly #work: Work;
  readonly #broken: string[] = [];
  #syncs = 0;
  kills = 0;
  readonly #left = { old: 0, 'old, in doubt': 0, new: 0 };
  readonly #calls = new Map<string, number>();
  /** The calls of the uninterrupted work. */
  #traced: readonly SystemCall[] = [];

  constructor(home: ChaosHarness, work: Work) {
    this.#home = home;
    this.#work = work;
  }

  /**
   * Does the work once without a kill and checks the order of its calls. A power cut loses unsynced writes, so all
   * writes to the WAL must be synced before the hub sends a request or a response. What is written to the database is
   * still in the WAL then.
   */
  async trace(): Promise<void> {
    const { hub } = this.#home;
    const work = await this.#work.prepare(this.#home);
    const kinds = ['pwrite64', 'fsync', 'fdatasync', 'connect', 'writev', 'write'];
    this.#traced = await traceSystemCalls(hub.pid, kinds, work);
    const unsynced = new Set<string>();
    for (const { name, on } of this.#traced) {
      const onStore = this.#isStore(on);
      if (onStore && name === 'pwrite64' && on.endsWith('-wal')) unsynced.add(on);
      if (onStore && name.endsWith('sync')) {
        unsynced.delete(on);
        this.#syncs += 1;
      }
      if (!on.startsWith('socket:') || unsynced.size === 0) continue;
      this.#broken.push(`${this.#work.name}: ${name} on a socket before a write was synced`);
    }
  }

  /** The number of calls of a kind in the uninterrupted work. */
  countCalls({ calls, onStore }: Calls): number {
    return this.#traced.filter(({ name, on }) => calls.includes(name) && (!onStore || this.#isStore(on))).length;
  }

  /** Kills the hub before a call. @returns false if the work has fewer calls, so that the hub was not killed */
  async killAt({ calls, onStore }: Calls, when: number): Promise<boolean> {
    const { hub } = this.#home;
    const state = join(hub.directory, 'state');
    const files = (this.#work.files ?? FILES).map((name) => join(state, name));
    const work = await this.#work.prepare(this.#home);
    // Retried, because the copy may be inconsistent if the hub makes a WAL checkpoint at that moment.
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
      // Calls after the response follow at once.
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
    await this.#checkDisk(where, before, left, tokensBefore);
    await hub.launch();
    await this.#checkStart(where, left);
    await this.#work.finish(this.#home).catch((error: unknown) => {
      this.#broken.push(`${where}: it was not completed (${messageOf(error)})`);
    });
    await this.#checkUse(where, left, before, tokensBefore);
    return true;
  }

  conclude(): ExperimentResult {
    const figures = prefixFigures(this.#work.name, {
      'boundaries with a kill': this.kills,
      'calls with a kill': [...this.#calls].map(([call, count]) => `${call} ${count}`).join(', '),
      ...(this.#syncs > 0 && { 'syncs without a kill, each before the sends that depend on it': this.#syncs }),
      'old generation on disk': this.#left.old,
      'old generation on disk, in doubt': this.#left['old, in doubt'],
      'new generation on disk': this.#left.new,
      'neither on disk': this.kills - this.#left.old - this.#left['old, in doubt'] - this.#left.new,
    });
    return { figures, broken: this.#broken };
  }

  #isStore(file: string): boolean {
    return FILES.some((name) => file === join(this.#home.hub.directory, 'state', name));
  }

  /** Checks that the old or the new generation is on disk, and that everything that was sent was written ahead. */
  async #checkDisk(
    where: string,
    before: StoredGrantRecord | null,
    left: StoredGrantRecord | null,
    tokensBefore: readonly string[],
  ) {
    if (left === null || before === null || !left.hasTokens)
      return void this.#broken.push(`${where}: the grant is lost`);
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

  /** Whether the new generation can follow from the work: one refresh, or many until a WAL checkpoint. */
  #plausible(before: StoredGrantRecord, left: StoredGrantRecord): boolean {
    return this.#work.name === WRITE_BACK || left.generation === before.generation + 1;
  }

  /** Checks that the hub reports an interrupted refresh, and only that. */
  async #checkStart(where: string, left: StoredGrantRecord | null): Promise<void> {
    const { hub } = this.#home;
    const { state, problem } = await hub.appliance(NAME);
    const interrupted = left !== null && left.attempt !== null;
    // By the log, because on a busy machine the retry may be over before the status can be read.
    const logged = (await readFile(hub.log, 'utf8')).includes('"refresh_interrupted"');
    if (logged !== interrupted)
      this.#broken.push(`${where}: the log ${logged ? 'reports' : 'does not report'} an interrupted refresh`);
    if (state === 'active' || (interrupted && state === 'retrying' && problem?.code === 'answer_lost')) return;
    this.#broken.push(`${where}: it is ${state} (${problem?.message})`);
  }

  /** Checks that no refresh token was used again after its successor was on disk, and that no code was sent twice. */
  async #checkUse(
    where: string,
    left: StoredGrantRecord | null,
    before: StoredGrantRecord | null,
    tokensBefore: readonly string[],
  ): Promise<void> {
    const sends = await this.#home.sends('refresh_token');
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
    const codes = (await this.#home.sends('authorization_code')).map(({ token }) => token);
    if (new Set(codes).size < codes.length) this.#broken.push(`${where}: a code was sent twice`);
  }

  async #tokens(): Promise<readonly string[]> {
    return (await this.#home.sends('refresh_token')).map(({ token }) => token);
  }
}

/** A refresh. @param by who retries it when the grant is in doubt */
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

const WRITE_BACK = 'refreshes with a WAL checkpoint';
/** Enough refreshes for a WAL checkpoint: each writes some pages, and a checkpoint follows after 64 pages. */
const ENOUGH = 50;

/** Refreshes until SQLite makes a WAL checkpoint, with kills at the checkpoint's writes. */
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

/** Pairs an appliance again that has a grant, from the login on. */
function pairing(): Work {
  let location = '';
  let link = '';
  const logIn = async ({ portal }: ChaosHarness, url: string) => {
    link = url;
    ({ location } = await portal.login({ state: stateParameterOf(link), user: NAME }));
  };
  const followRedirect = async () => {
    if (!/ are connected/.test(await fetchPage(location))) throw new Error('it is not connected');
  };
  return {
    name: 'pairing',
    async prepare(home) {
      await logIn(home, (await home.hub.beginPairing(NAME)).href);
      return followRedirect;
    },
    async finish(home) {
      // The person reloads the page to which the login was redirected.
      await fetchPage(location);
      const { authorize_url } = await home.hub.until(NAME, (status) => status.authorize_url !== link);
      if (authorize_url === undefined) return;
      await logIn(home, authorize_url);
      await followRedirect();
      await refreshed(home.hub);
    },
  };
}

async function refreshed(hub: ChaosHarness['hub']): Promise<void> {
  const { state, problem } = await hub.ask((control) => control.request('refresh', { name: NAME }));
  if (state !== 'active') throw new Error(`it is ${state}: ${problem?.message}`);
}

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionResponse, CredentialsResponse } from '../../src/control/messages.ts';
import { TokenLoad } from '../reliability/load.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { slowStoreEnv } from '../support/slow-store.ts';
import type { Experiment, ExperimentOptions, ExperimentResult } from './experiment.ts';
import { soakFaults } from './soak-faults.ts';
import { GUEST, INSTALLER_USER, SoakInstaller } from './soak-installer.ts';
import { meanGrowth, median, medianGrowth, openFiles, residentMemory, type Sample, slope } from './soak-statistics.ts';

const APPLIANCES = 10;
/** The interval of an appliance's token requests, in ms: 50 requests per second in total. */
const EVERY = 200;
/** After this number of requests a connection is replaced. */
const REQUESTS_PER_CONNECTION = 50;
const SCOPES = ['Monitoring', 'Monitoring RemoteControl', 'RegisterDevice'];

/** An appliance, and the user and scope that its tokens must have. */
interface Client {
  readonly credentials: CredentialsResponse;
  readonly connection: string;
  readonly user: string;
  readonly scope: string;
}

/** The differences between the short and the long form. */
interface Form {
  /** In seconds; null: until each kind of fault has occurred. */
  readonly duration: number | null;
  /** In seconds. */
  readonly tokenLifetime: number;
  /** Concurrent requests of one appliance. */
  readonly maxConcurrent: number;
  /** The pause between two steps of the installer, in ms. */
  readonly installerPause: number;
  /** The permitted growth; null: not checked, because that takes longer. */
  readonly growth: Growth | null;
}

/** Limits of the growth after the warm-up, in kB per minute. */
interface Growth {
  /**
   * Of the heap after a full collection: 400 kB per minute are 136 bytes for each issued token, less than a kept token
   * would take. Compiled code counts as well, until V8 discards it.
   */
  readonly heap: number;
  /** Of resident memory in the second half, without bursts: the allocator keeps the memory of the most connections. */
  readonly memory: number;
  /**
   * In files: how much higher the minimum of open files may be in the second half. Waiting requests end, leaked files
   * stay.
   */
  readonly files: number;
}

/** At five requests per second, this many wait for a hanging refresh until they get a 503. */
const WAITING = 50;
const LONG: Form = {
  duration: 600,
  tokenLifetime: 20,
  maxConcurrent: WAITING,
  installerPause: 5000,
  growth: { heap: 400, memory: 1000, files: 12 },
};
const SHORT: Form = { duration: null, tokenLifetime: 4, maxConcurrent: 10, installerPause: 200, growth: null };
/** In seconds. */
const WARM_UP = 150;
/** The maximum duration of the short form, in seconds. */
const MAX_SHORT = scaleDeadline(60);
/** So many connections are used by two appliances each, the others by one. */
const SHARED = 3;
/** The minimum number of token requests of the short form. */
const MIN_REQUESTS = 300;

/**
 * The settings of a small machine. With the defaults the young generation and the allocator's arenas first fill up to
 * their size, which takes longer than the soak and looks like a leak.
 */
const SMALL = { options: '--max-semi-space-size=1', env: { MALLOC_ARENA_MAX: '2' } };

/** Connections to the portal that the portal may not have closed yet. */
const LEFT_OPEN = 2;
/** The time for recovery, in seconds: a hanging refresh times out after a minute, and is then repeated. */
const RECOVERY = 100;

export const experiment: Experiment = {
  name: 'Soak',
  promise:
    'With 50 token requests per second and every fault of the portal at 5 %, the hub loses no grant and issues no wrong token, and neither its memory nor its open files grow.',
  run: (scale, random) => soak(scale, random, scale.long ? { ...LONG, ...durationOf(scale) } : SHORT),
};

/** The changed duration. A shorter run is not checked for growth, because it ends before what is compiled is complete. */
function durationOf({ minutes }: ExperimentOptions): Partial<Form> {
  if (minutes === undefined) return {};
  const duration = minutes * 60;
  return duration < (LONG.duration ?? 0) ? { duration, growth: null } : { duration };
}

async function soak(scale: ExperimentOptions, random: SeededRandom, form: Form): Promise<ExperimentResult> {
  const users = Array.from({ length: APPLIANCES - SHARED }, (_, index) => `user-${index}`);
  const heapFile = logFile('heap');
  await using portal = await EmulatorProcess.start(
    '--tls',
    ...['--token-lifetime', `${form.tokenLifetime}s`, '--refresh-grace-time', '10m', '--seed', String(scale.seed)],
    ...[...users, INSTALLER_USER].flatMap((user) => ['--user', `${user}:password of ${user}`]),
  );
  await using hub = await HubProcess.prepare({
    emulator: portal,
    portal: `ca_file = "${portal.caFile}"`,
    metrics: '127.0.0.1:0',
    env: {
      ...SMALL.env,
      ...slowStoreEnv(`${SMALL.options} --import=${new URL('./soak-probe.ts', import.meta.url)}`),
      LATCHKEY_TEST_HEAP: heapFile,
    },
  });
  await hub.launch();
  const { pid } = hub;
  const filesAtStart = openFiles(pid);
  const clients = await pairAll(hub, portal, users);
  scale.progress(`${users.length} connections are paired`);
  for (const fault of soakFaults(random, form.duration === null)) await portal.addFault(fault);

  const credentials = clients.map((client) => client.credentials);
  const options = { atOnce: form.maxConcurrent, tries: 3, perConnection: REQUESTS_PER_CONNECTION };
  const load = await TokenLoad.start(hub, portal, credentials, EVERY, options);
  const lost = new Set<string>();
  const memory: Sample[] = [];
  const files: Sample[] = [];
  const disturbances = new Disturbances(hub, portal, clients, random);
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  const installer = new SoakInstaller(hub, portal, form.installerPause);
  let asking = 0;
  {
    await using _asking = load;
    await using _disturbances = disturbances;
    await using _installer = installer;
    const continues = async () => {
      if (form.duration !== null) return seconds() < form.duration;
      // The emulator's API is unreachable while its base origin is down, which is the last fault.
      const met = await hits(portal).catch(() => new Map<string, number>());
      const metAll = met.has('origin_down (base)') && [...met.values()].every((count) => count > 0);
      const isDone = disturbances.pairings > 0 && installer.hasTriedAll && load.asked >= MIN_REQUESTS;
      return !(metAll && isDone) && seconds() < MAX_SHORT;
    };
    for (let second = 1; !scale.signal.aborted && (await continues()); second++) {
      await sleep(Math.max(0, 1000 * (second - seconds())), undefined, { signal: scale.signal }).catch(() => undefined);
      const sample = (value: number): Sample => ({ minutes: seconds() / 60, value });
      memory.push(sample(residentMemory(pid)));
      files.push(sample(openFiles(pid)));
      for (const { name, state } of await statesDuring(hub, installer)) {
        if (state !== 'active' && state !== 'retrying') lost.add(name);
      }
      disturbances.begin(second);
      if (second % 20 === 0 && !scale.signal.aborted) {
        const kB = memory.at(-1)?.value;
        scale.progress(
          `${load.asked} requests, ${wrongOf(load, clients).length} wrong, ${lost.size} grants lost, ${kB} kB`,
        );
      }
    }
    asking = seconds();
  }
  const faultsMet = await hits(portal);
  await portal.ask('DELETE', '/_emulator/faults');
  const recovered = !scale.long || (await allActive(hub, RECOVERY));
  await portal[Symbol.asyncDispose]();
  const filesAtEnd = await settled(pid, filesAtStart);
  const lives = hub.pid === pid && process.kill(pid, 0);
  const unexpected = unexpectedLines(readFileSync(hub.log, 'utf8'));

  await hub.kill('SIGTERM');
  const growth = form.growth && checkGrowth(form.growth, { memory, files, heap: heapOf(heapFile) });
  const wrong = wrongOf(load, clients);
  const tried = load.handOuts.length - load.untried.length;
  const took = [...load.handOuts, ...load.refusals].map(({ asked, answered }) => answered - asked);
  return {
    figures: {
      'token requests': `${load.asked}, ${(load.asked / asking).toFixed(0)} per second`,
      'tokens issued': `${load.handOuts.length}, ${tried} of them used at the portal`,
      'requests deferred (503)': load.refusals.filter(({ status }) => status === 503).length,
      'requests without a response': [load.unanswered.length, ...countEach(load.unanswered)].join(', '),
      'wrong responses': wrong.length,
      'slowest response, ms': took.reduce((slowest, ms) => Math.max(slowest, ms), 0),
      faults: [...faultsMet].map(([kind, count]) => `${kind} ${count}`).join(', '),
      'pairings under faults': disturbances.pairings,
      'steps of the installer': installer.summary,
      'grants lost': lost.size,
      ...growth?.figures,
      'open files': `${filesAtStart} at the start, ${median(files.map(({ value }) => value))} under load, ${filesAtEnd} at the end`,
      'unexpected log lines': unexpected.length,
    },
    broken: [
      ...wrong.slice(0, 5),
      ...(load.unanswered.length > load.asked / 1000 ? [`${load.unanswered.length} requests got no response`] : []),
      ...[...lost].map((name) => `${name} lost its grant`),
      ...(recovered ? [] : [`not every appliance was active again ${RECOVERY} s after the last fault`]),
      ...(lives ? [] : ['the daemon ended']),
      ...unexpected.slice(0, 5).map((line) => `the log has an unexpected line: ${line.slice(0, 300)}`),
      ...(growth?.broken ?? []),
      ...(filesAtEnd > filesAtStart + LEFT_OPEN ? [`${filesAtEnd - filesAtStart} files are left open`] : []),
    ],
  };
}

/** One sentence for each response that an appliance must never get. */
function wrongOf({ handOuts, refusals }: TokenLoad, clients: readonly Client[]): string[] {
  const wrong = refusals
    .filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) >= 1))
    .map(({ appliance, status, error }) => `${appliance} got the response ${status} ${error}`);
  const byName = new Map(clients.map((client) => [client.credentials.name, client]));
  for (const { appliance, scope, verdict, accepted, expiresIn } of handOuts) {
    const client = byName.get(appliance);
    if (scope !== client?.scope) wrong.push(`${appliance} got a response with scope ${scope}`);
    if (verdict === null) continue;
    if (!accepted) {
      wrong.push(`${appliance} got a token that the portal rejects (${verdict.status}), with ${expiresIn} s left`);
    }
    if (verdict.status !== 200) continue;
    if (verdict.user !== client?.user) wrong.push(`${appliance} got a token of ${verdict.user}`);
    if (verdict.scope !== client?.scope) wrong.push(`${appliance} got a token for scope ${verdict.scope}`);
  }
  return wrong;
}

/** Checks the growth after the warm-up. */
function checkGrowth(limits: Growth, samples: Readonly<Record<keyof Growth, readonly Sample[]>>): ExperimentResult {
  const after = ({ minutes }: Sample) => minutes * 60 > WARM_UP;
  const heap = slope(samples.heap.filter(after));
  const late = samples.memory.slice(samples.memory.length / 2);
  // The smaller of the two: the median is random in a run that was stopped early, and bursts dominate the mean.
  const memory = Math.min(medianGrowth(late), meanGrowth(late));
  const open = samples.files.filter(after).map(({ value }) => value);
  const files = Math.min(...open.slice(open.length / 2)) - Math.min(...open.slice(0, open.length / 2));
  return {
    figures: {
      'heap slope, kB/min': heap.toFixed(1),
      'memory growth, kB/min': memory.toFixed(0),
      'memory, MB': `${mB(samples.memory.find(after))} after the warm-up, ${mB(samples.memory.at(-1))} at the end`,
    },
    broken: [
      ...(heap > limits.heap ? [`the heap grows by ${heap.toFixed(0)} kB per minute`] : []),
      ...(memory > limits.memory ? [`the memory grows by ${memory.toFixed(0)} kB per minute`] : []),
      ...(files > limits.files ? [`the minimum of open files is ${files} higher in the second half`] : []),
    ],
  };
}

/** Pairs an appliance for each user, who logs in without a browser. Some of them share their connection with another one. */
async function pairAll(hub: HubProcess, portal: EmulatorProcess, users: readonly string[]): Promise<Client[]> {
  const clients: Client[] = [];
  for (const [index, user] of users.entries()) {
    const name = `appliance-${index}`;
    const scope = SCOPES[index % SCOPES.length] ?? '';
    const credentials = await hub.addAppliance(name, scope);
    await hub.pair(name, portal, user);
    const client = { connection: name, user, scope };
    clients.push({ credentials, ...client });
    if (index >= SHARED) continue;
    const other = await hub.addAppliance(`${name}-2`, null, null, name);
    clients.push({ credentials: other, ...client });
  }
  return clients;
}

/** Events during the load: a connection is paired again, and sometimes an origin of the portal is down. */
class Disturbances implements AsyncDisposable {
  pairings = 0;
  readonly #hub: HubProcess;
  readonly #portal: EmulatorProcess;
  readonly #clients: readonly Client[];
  readonly #random: SeededRandom;
  #work: Promise<unknown> = Promise.resolve();

  constructor(hub: HubProcess, portal: EmulatorProcess, clients: readonly Client[], random: SeededRandom) {
    this.#hub = hub;
    this.#portal = portal;
    this.#clients = clients;
    this.#random = random;
  }

  /** Begins the events of a second. Under faults a pairing may fail; the previous grant then stays. */
  begin(second: number): void {
    if (second % 7 === 2) {
      const { connection, user } = this.#random.pick(this.#clients);
      this.#do(async () => {
        await this.#hub.pair(connection, this.#portal, user);
        this.pairings += 1;
      });
    }
    // The base origin is down only for a moment, because appliances use the tokens there.
    if (second % 40 === 5)
      this.#do(() => this.#portal.addFault({ kind: 'origin_down', origin: 'frontend', seconds: 3 }));
    if (second % 40 === 8) this.#do(() => this.#portal.addFault({ kind: 'origin_down', origin: 'base', seconds: 1 }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#work;
  }

  #do(work: () => Promise<void>): void {
    this.#work = Promise.all([this.#work, work().catch(() => undefined)]);
  }
}

/** The states of the connections whose appliances request tokens, and not of those that the installer adds and removes. */
async function statesOf(hub: HubProcess): Promise<readonly ConnectionResponse[]> {
  const { connections } = await hub.ask((control) => control.request('status'));
  return connections.filter(({ name }) => !name.startsWith(GUEST));
}

/** The same; none while the installer reloads the hub, when it may be unreachable. */
async function statesDuring(hub: HubProcess, installer: SoakInstaller): Promise<readonly ConnectionResponse[]> {
  const { isReloading } = installer;
  return statesOf(hub).catch((error: unknown) => {
    if (isReloading || installer.isReloading) return [];
    throw error;
  });
}

async function allActive(hub: HubProcess, within: number): Promise<boolean> {
  const recovered = async () => (await statesOf(hub)).every(({ state }) => state === 'active');
  return eventually(recovered, within).catch(() => false);
}

/** Each text with the number of its occurrences: `socket hang up 3`. */
function countEach(texts: readonly string[]): string[] {
  return Object.entries(Object.groupBy(texts, (text) => text)).map(([text, all = []]) => `${text} ${all.length}`);
}

/** The number of faults by kind, and by origin if the fault has one. */
async function hits(portal: EmulatorProcess): Promise<ReadonlyMap<string, number>> {
  const { answer } = await portal.ask('GET', '/_emulator/faults');
  const byKind = new Map<string, number>();
  const { faults } = answer as { faults: { kind: string; origin?: string; hits: number }[] };
  for (const { kind, origin, hits: count } of faults) {
    const what = origin === undefined ? kind : `${kind} (${origin})`;
    byKind.set(what, (byKind.get(what) ?? 0) + count);
  }
  return byKind;
}

/** The number of open files after the portal and the appliances have gone. */
async function settled(pid: number, wanted: number): Promise<number> {
  await eventually(async () => openFiles(pid) <= wanted + LEFT_OPEN, 10).catch(() => undefined);
  return openFiles(pid);
}

/** Samples of the heap in kB, one every two seconds. */
function heapOf(file: string): Sample[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line, index) => ({ minutes: index / 30, value: Number.parseInt(line, 10) / 1024 }));
}

/** The lines of the log that are not events of the daemon, or events that must never occur. */
function unexpectedLines(log: string): string[] {
  const lines = log.split('\n').filter((line) => line !== '');
  return lines.filter((line) => !line.startsWith('{"level"') || /unexpected|crashed/.test(line));
}

function mB(sample: Sample | undefined): string {
  return ((sample?.value ?? 0) / 1024).toFixed(0);
}

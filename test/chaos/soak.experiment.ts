import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApplianceResponse, CredentialsResponse } from '../../src/control/messages.ts';
import { TokenLoad } from '../reliability/load.ts';
import { scaleDeadline } from '../support/deadlines.ts';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { logFile } from '../support/logs.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { slowStoreEnv } from '../support/slow-store.ts';
import type { Experiment, ExperimentOptions, ExperimentResult } from './experiment.ts';
import { soakFaults } from './soak-faults.ts';
import { meanGrowth, median, medianGrowth, openFiles, residentMemory, type Sample, slope } from './soak-statistics.ts';

const APPLIANCES = 10;
/** ms between two requests of one appliance: 50 a second of all together. */
const EVERY = 200;
/** A connection serves so many requests, then another takes its place. */
const REQUESTS_A_CONNECTION = 50;
const SCOPES = ['Monitoring', 'Monitoring RemoteControl', 'RegisterDevice'];

/** An appliance that asks, and whose tokens must be of this user and scope. */
interface Customer {
  readonly credentials: CredentialsResponse;
  readonly user: string;
  readonly scope: string;
}

/** What the two forms differ in. */
interface Form {
  /** In seconds; null: until each kind of fault has struck. */
  readonly duration: number | null;
  /** In seconds. */
  readonly tokenLifetime: number;
  /** Requests of one appliance at a time. */
  readonly mostAtOnce: number;
  /** What may grow; null: that takes longer to see. */
  readonly growth: Growth | null;
}

/** Bounds of what is measured after a warm-up, in kB a minute. */
interface Growth {
  /**
   * Of the heap after a full collection: 400 kB a minute are 136 bytes a hand-out, less than its token and a place to keep it
   * take. (Code that is compiled on the way counts as well, until it is thrown away.)
   */
  readonly heap: number;
  /** Of resident memory, in the second half, without bursts: the allocator keeps what the most connections took. */
  readonly memory: number;
  /** The least that is open in a half may rise by so many files: requests that wait come and go, what is not closed stays. */
  readonly files: number;
}

/** At five requests a second so many wait for a refresh that hangs, until each is answered that there is no token yet. */
const WAITING = 50;
const LONG: Form = {
  duration: 600,
  tokenLifetime: 20,
  mostAtOnce: WAITING,
  growth: { heap: 400, memory: 1000, files: 12 },
};
const SHORT: Form = { duration: null, tokenLifetime: 4, mostAtOnce: 10, growth: null };
/** In seconds. */
const WARM_UP = 150;
/** The short form ends after this at the latest, in seconds. */
const MAX_SHORT = scaleDeadline(60);
/** Hand-outs that the short form asks for at the least. */
const MIN_ASKED = 300;

/**
 * As on a small machine. With the defaults the young generation and the allocator's arenas first fill up to their size,
 * which takes longer than the soak, and looks like a leak.
 */
const SMALL = { options: '--max-semi-space-size=1', env: { MALLOC_ARENA_MAX: '2' } };

/** Connections to the portal that its end has not closed yet. */
const LEFT_OPEN = 2;
/** Seconds in which everything is well again: a refresh that hangs is waited for a minute, and then repeated. */
const RECOVERY = 100;

export const experiment: Experiment = {
  name: 'Soak',
  promise:
    'At 50 hand-outs a second and with every fault of the portal at 5 % the hub loses no grant, hands out no wrong token, and neither its memory nor its open files grow.',
  run: (scale, random) => soak(scale, random, scale.long ? LONG : SHORT),
};

async function soak(scale: ExperimentOptions, random: SeededRandom, form: Form): Promise<ExperimentResult> {
  const users = Array.from({ length: APPLIANCES }, (_, index) => `user-${index}`);
  const heapFile = logFile('heap');
  await using portal = await EmulatorProcess.start(
    '--tls',
    ...['--token-lifetime', `${form.tokenLifetime}s`, '--refresh-grace-time', '10m', '--seed', String(scale.seed)],
    ...users.flatMap((user) => ['--user', `${user}:password of ${user}`]),
  );
  await using hub = await HubProcess.prepare({
    emulator: portal,
    portal: `ca_file = "${portal.caFile}"`,
    env: {
      ...SMALL.env,
      ...slowStoreEnv(`${SMALL.options} --import=${new URL('./soak-probe.ts', import.meta.url)}`),
      LATCHKEY_TEST_HEAP: heapFile,
    },
  });
  await hub.launch();
  const { pid } = hub;
  const filesAtStart = openFiles(pid);
  const customers = await pairAll(hub, portal, users);
  scale.progress(`${customers.length} appliances are paired`);
  for (const fault of soakFaults(random, form.duration === null)) await portal.addFault(fault);

  const credentials = customers.map((customer) => customer.credentials);
  const asked = { atOnce: form.mostAtOnce, tries: 3, perConnection: REQUESTS_A_CONNECTION };
  const load = await TokenLoad.start(hub, portal, credentials, EVERY, asked);
  const lost = new Set<string>();
  const memory: Sample[] = [];
  const files: Sample[] = [];
  const trouble = new Trouble(hub, portal, customers, random);
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  let asking = 0;
  {
    await using _asking = load;
    await using _making = trouble;
    const goesOn = async () => {
      if (form.duration !== null) return seconds() < form.duration;
      // It can't be asked while its base origin is down, which is the last of what is done to it.
      const met = await hits(portal).catch(() => new Map<string, number>());
      const metAll = met.has('origin_down (base)') && [...met.values()].every((count) => count > 0);
      return !(metAll && trouble.pairings > 0 && load.asked >= MIN_ASKED) && seconds() < MAX_SHORT;
    };
    for (let second = 1; !scale.signal.aborted && (await goesOn()); second++) {
      await sleep(Math.max(0, 1000 * (second - seconds())), undefined, { signal: scale.signal }).catch(() => undefined);
      const sample = (value: number): Sample => ({ minutes: seconds() / 60, value });
      memory.push(sample(residentMemory(pid)));
      files.push(sample(openFiles(pid)));
      for (const { name, state } of await statesOf(hub)) if (state !== 'active' && state !== 'retrying') lost.add(name);
      trouble.make(second);
      if (second % 20 === 0 && !scale.signal.aborted) {
        const kB = memory.at(-1)?.value;
        scale.progress(
          `${load.asked} asked, ${wrongOf(load, customers).length} wrong, ${lost.size} grants lost, ${kB} kB`,
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
  const odd = oddLines(readFileSync(hub.log, 'utf8'));

  const growth = form.growth && measured(form.growth, { memory, files, heap: heapOf(heapFile) });
  const wrong = wrongOf(load, customers);
  const tried = load.handOuts.length - load.untried.length;
  const took = [...load.handOuts, ...load.refusals].map(({ asked, answered }) => answered - asked);
  return {
    figures: {
      'hand-outs asked for': `${load.asked}, ${(load.asked / asking).toFixed(0)} a second`,
      'tokens handed out': `${load.handOuts.length}, ${tried} of them tried at the portal`,
      'told to come back later (503)': load.refusals.filter(({ status }) => status === 503).length,
      'without an answer': load.unanswered,
      'wrong hand-outs': wrong.length,
      'slowest answer, ms': took.reduce((slowest, ms) => Math.max(slowest, ms), 0),
      'faults met': [...faultsMet].map(([kind, struck]) => `${kind} ${struck}`).join(', '),
      'pairings under faults': trouble.pairings,
      'grants lost': lost.size,
      ...growth?.figures,
      'open files': `${filesAtStart} at the start, ${median(files.map(({ value }) => value))} under load, ${filesAtEnd} in the end`,
      'unexpected log lines': odd.length,
    },
    broken: [
      ...wrong.slice(0, 5),
      ...(load.unanswered > load.asked / 1000 ? [`${load.unanswered} requests were not answered`] : []),
      ...[...lost].map((name) => `${name} lost its grant`),
      ...(recovered ? [] : [`not every appliance was active again ${RECOVERY} s after the last fault`]),
      ...(lives ? [] : ['the daemon ended']),
      ...odd.slice(0, 5).map((line) => `the log has an unexpected line: ${line.slice(0, 300)}`),
      ...(growth?.broken ?? []),
      ...(filesAtEnd > filesAtStart + LEFT_OPEN ? [`${filesAtEnd - filesAtStart} files are left open`] : []),
    ],
  };
}

/** What an appliance should never be told or given, in one sentence each. */
function wrongOf({ handOuts, refusals }: TokenLoad, customers: readonly Customer[]): string[] {
  const wrong = refusals
    .filter(({ status, retryAfter }) => status !== 503 || !(Number(retryAfter) >= 1))
    .map(({ appliance, status, error }) => `${appliance} was answered ${status} ${error}`);
  const by = new Map(customers.map((customer) => [customer.credentials.name, customer]));
  for (const { appliance, scope, verdict, accepted, expiresIn } of handOuts) {
    const customer = by.get(appliance);
    if (scope !== customer?.scope) wrong.push(`${appliance} was told scope ${scope}`);
    if (verdict === null) continue;
    if (!accepted)
      wrong.push(
        `${appliance} was given a token that the portal refuses (${verdict.status}), with ${expiresIn} s left`,
      );
    if (verdict.status !== 200) continue;
    if (verdict.user !== customer?.user) wrong.push(`${appliance} was given a token of ${verdict.user}`);
    if (verdict.scope !== customer?.scope) wrong.push(`${appliance} was given a token for scope ${verdict.scope}`);
  }
  return wrong;
}

/** What grows after the warm-up. */
function measured(bounds: Growth, taken: Readonly<Record<keyof Growth, readonly Sample[]>>): ExperimentResult {
  const after = ({ minutes }: Sample) => minutes * 60 > WARM_UP;
  const heap = slope(taken.heap.filter(after));
  const late = taken.memory.slice(taken.memory.length / 2);
  // What is usual is a matter of chance in a run that was stopped early, and what comes in all is one of bursts.
  const memory = Math.min(medianGrowth(late), meanGrowth(late));
  const open = taken.files.filter(after).map(({ value }) => value);
  const files = Math.min(...open.slice(open.length / 2)) - Math.min(...open.slice(0, open.length / 2));
  return {
    figures: {
      'heap slope, kB/min': heap.toFixed(1),
      'memory growth, kB/min': memory.toFixed(0),
      'memory, MB': `${mB(taken.memory.find(after))} after the warm-up, ${mB(taken.memory.at(-1))} in the end`,
    },
    broken: [
      ...(heap > bounds.heap ? [`the heap grows by ${heap.toFixed(0)} kB a minute`] : []),
      ...(memory > bounds.memory ? [`the memory grows by ${memory.toFixed(0)} kB a minute`] : []),
      ...(files > bounds.files
        ? [`${files} more files are open at the least in the second half than in the first`]
        : []),
    ],
  };
}

/** Pairs an appliance for each user, who logs in without a browser. */
async function pairAll(hub: HubProcess, portal: EmulatorProcess, users: readonly string[]): Promise<Customer[]> {
  const customers: Customer[] = [];
  for (const [index, user] of users.entries()) {
    const name = `appliance-${index}`;
    const scope = SCOPES[index % SCOPES.length] ?? '';
    const credentials = await hub.addAppliance(name, scope);
    await hub.pair(name, portal, user);
    customers.push({ credentials, user, scope });
  }
  return customers;
}

/** What a home does beside the load: somebody pairs again, and now and then an origin of the portal is down. */
class Trouble implements AsyncDisposable {
  pairings = 0;
  readonly #hub: HubProcess;
  readonly #portal: EmulatorProcess;
  readonly #customers: readonly Customer[];
  readonly #random: SeededRandom;
  #work: Promise<unknown> = Promise.resolve();

  constructor(hub: HubProcess, portal: EmulatorProcess, customers: readonly Customer[], random: SeededRandom) {
    this.#hub = hub;
    this.#portal = portal;
    this.#customers = customers;
    this.#random = random;
  }

  /** What becomes of a pairing is the portal's affair: under faults it may fail, and the grant before stays. */
  make(second: number): void {
    if (second % 7 === 2) {
      const { credentials, user } = this.#random.pick(this.#customers);
      this.#do(async () => {
        await this.#hub.pair(credentials.name, this.#portal, user);
        this.pairings += 1;
      });
    }
    // Of the base origin only for a moment: the tokens are tried out there.
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

async function statesOf(hub: HubProcess): Promise<readonly ApplianceResponse[]> {
  return (await hub.ask((control) => control.status())).appliances;
}

async function allActive(hub: HubProcess, within: number): Promise<boolean> {
  const recovered = async () => (await statesOf(hub)).every(({ state }) => state === 'active');
  return eventually(recovered, within).catch(() => false);
}

/** How many faults of each kind struck, and at which origin where that is a part of it. */
async function hits(portal: EmulatorProcess): Promise<ReadonlyMap<string, number>> {
  const { answer } = await portal.ask('GET', '/_emulator/faults');
  const byKind = new Map<string, number>();
  const { faults } = answer as { faults: { kind: string; origin?: string; hits: number }[] };
  for (const { kind, origin, hits: struck } of faults) {
    const what = origin === undefined ? kind : `${kind} (${origin})`;
    byKind.set(what, (byKind.get(what) ?? 0) + struck);
  }
  return byKind;
}

/** The files that stay open when the portal and the appliances are gone. */
async function settled(pid: number, wanted: number): Promise<number> {
  await eventually(async () => openFiles(pid) <= wanted + LEFT_OPEN, 10).catch(() => undefined);
  return openFiles(pid);
}

/** The heap's samples, in kB; one every two seconds. */
function heapOf(file: string): Sample[] {
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.map((line, index) => ({ minutes: index / 30, value: Number.parseInt(line, 10) / 1024 }));
}

/** What the daemon says that is no event of its own, or one that should never be. */
function oddLines(log: string): string[] {
  const lines = log.split('\n').filter((line) => line !== '');
  return lines.filter((line) => !line.startsWith('{"level"') || /unexpected|crashed/.test(line));
}

function mB(sample: Sample | undefined): string {
  return ((sample?.value ?? 0) / 1024).toFixed(0);
}

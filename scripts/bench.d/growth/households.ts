import { cpSync, existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type FleetMember, type FleetPortal, storeFleet } from '../../../test/reliability/stored-fleet.ts';
import type { HubProcess } from '../../../test/support/hub-process.ts';
import { prepareHub } from '../hub.ts';
import { LOAD_CORE, processorTime, residentMemory, startProgram } from '../program.ts';
import type { Subject } from '../suite.ts';

/** A portal of its own, which says how many refreshes it has answered. */
export interface CountingPortal extends AsyncDisposable, FleetPortal {
  /** Refreshes and exchanges of codes so far. */
  answered(): Promise<number>;
  /** From now on it gives tokens that live so many seconds. */
  giveTokensFor(seconds: number): Promise<void>;
  /** Processor time so far, in ms. */
  cpu(): number;
}

/**
 * Starts a portal. On the load's core it gives way to the load.
 * @param lifetime of its access tokens, in s
 */
export async function startPortal(lifetime: number, core = LOAD_CORE): Promise<CountingPortal> {
  const nice = core === LOAD_CORE ? ['nice', '-n', '10'] : [];
  const command = [...nice, process.execPath, join(import.meta.dirname, 'portal.ts'), String(lifetime)];
  const program = await startProgram(command, { core, ready: (line) => line.startsWith('{') });
  const { countUrl, ...portal } = JSON.parse(program.said) as Omit<FleetPortal, 'login'> & { countUrl: string };
  return {
    ...portal,
    async login(request) {
      return (await ask(portal.baseUrl, 'POST', 'login', request)) as { location: string };
    },
    async giveTokensFor(seconds) {
      await ask(portal.baseUrl, 'PATCH', 'settings', { token_lifetime: seconds });
    },
    answered: async () => Number(await (await fetch(countUrl)).text()),
    cpu: () => processorTime(program.pid),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

/** @returns what the emulator's own API answers */
async function ask(baseUrl: string, method: string, path: string, body: unknown): Promise<unknown> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(`${baseUrl}/_emulator/${path}`, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}`);
  return answer.json();
}

/** A hub with many appliances, which is started and ended again and again on the same store. */
export interface Household extends AsyncDisposable {
  readonly hub: HubProcess;
  /** Those whose tokens live long. */
  readonly fleet: readonly FleetMember[];
  /** @returns from the start of the process to "hub started", in ms */
  launch(): Promise<number>;
  end(): Promise<void>;
  /** What is in use of the heap after a full collection, and what no file backs of all memory then; in kB. */
  memory(): Promise<{ readonly heap: number; readonly own: number }>;
}

/** So many appliances of one portal. */
export interface Members {
  readonly portal: FleetPortal;
  readonly count: number;
}

/**
 * Fills the store of a hub, and starts it once: what a first start writes is not what is to be measured.
 * @param members by the name of their portal; those of `home` are the household's `fleet`
 */
export async function setUpHousehold(
  subject: Subject,
  members: Readonly<{ home: Members } & Record<string, Members>>,
  scratch: string,
): Promise<Household> {
  const { home, ...others } = members;
  const heapFile = join(scratch, `heap-${subject.name.replaceAll(' ', '-')}-${home.count}`);
  const hub = await prepareHub(subject, {
    emulator: home.portal,
    toml: Object.entries(others).map(tomlOf).join('\n'),
    env: { NODE_OPTIONS: `--import=${new URL('./heap.js', import.meta.url)}`, BENCH_HEAP: heapFile },
  });
  for (const [name, { portal }] of Object.entries(others)) {
    writeFileSync(join(hub.directory, `${name}.secret`), portal.clientSecret, { mode: 0o600 });
  }
  const sources = join(subject.root, 'src');
  // Filled in memory: the syncs of ten thousand pairings would take minutes.
  using memory = mkdtempDisposableSync('/dev/shm/latchkey-bench-');
  mkdirSync(join(memory.path, 'state'), { mode: 0o700 });
  let fleet: FleetMember[] = [];
  for (const [portal, { portal: emulator, count }] of Object.entries(members)) {
    const names = Array.from({ length: count }, (_, index) => `${portal}-${index}`);
    const stored = await storeFleet({ directory: memory.path }, emulator, names, 0, { portal, sources });
    if (portal === 'home') fleet = stored;
  }
  cpSync(memory.path, hub.directory, { recursive: true });
  await hub.launch();
  await hub.kill('SIGTERM');
  return {
    hub,
    fleet,
    async launch() {
      const before = performance.now();
      await hub.launch();
      return performance.now() - before;
    },
    end: () => hub.kill('SIGTERM'),
    async memory() {
      rmSync(heapFile, { force: true });
      process.kill(hub.pid, 'SIGUSR2');
      while (!existsSync(heapFile)) await sleep(20);
      const { heapUsed } = JSON.parse(readFileSync(heapFile, 'utf8')) as { heapUsed: number };
      return { heap: heapUsed / 1024, own: residentMemory(hub.pid).own * 1024 };
    },
    [Symbol.asyncDispose]: () => hub[Symbol.asyncDispose](),
  };
}

function tomlOf([name, { portal }]: [string, Members]): string {
  return [
    `[portals.${name}]`,
    `base_url = "${portal.baseUrl}"`,
    `frontend_url = "${portal.frontendUrl}"`,
    `client_id = "${portal.clientId}"`,
    `client_secret_file = "${name}.secret"`,
  ].join('\n');
}

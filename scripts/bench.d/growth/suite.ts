import { setTimeout as sleep } from 'node:timers/promises';
import { Secret } from '../../../src/core/secret.ts';
import { HttpPortal } from '../../../src/portal/http-portal.ts';
import { granted } from '../../../test/reliability/stored-fleet.ts';
import { type Chain, type Load, runLoad } from '../load.ts';
import { table } from '../page.ts';
import { processorTime, SERVER_CORE } from '../program.ts';
import { Figures, inTurns } from '../rounds.ts';
import { median, quotient, spread } from '../statistics.ts';
import {
  type Bench,
  figures,
  limit,
  type Measurement,
  type Report,
  type Suite,
  type Target,
  target,
} from '../suite.ts';
import { tokenRequest } from '../token-request.ts';
import { type CountingPortal, type Household, setUpHousehold, startPortal } from './households.ts';
import { refreshSteps } from './scheduling.ts';

/** In the wave: so many appliances have tokens that live long, and ask for them; all others come due at once. */
const WHO_ASK = 40;
/** Requests a second of these together. */
const RATE = 200;
/** Of the tokens in the wave, in s: a hub with ten thousand of them has twelve hundred refreshes to do each second. */
const SHORT = 10;
const LONG = 24 * 3600;
/** So many refreshes a hub sends a portal at once. */
const AT_ONCE = 8;
/** Until all of them are refreshed, in s, at most. */
const LONGEST_WAVE = 300;
/** A hub gives one device 250 connections. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];

const HEAP = (grants: number) => `${grants} grants: heap`;
const OWN = (grants: number) => `${grants} grants: own memory`;
const START = (grants: number) => `${grants} grants: start`;
const START_CPU = (grants: number) => `${grants} grants: start, processor`;
const STEP = (grants: number) => `${grants} grants: one refresh in the broker, processor`;
const WAVE = 'wave: refreshes';
const WAVE_CPU = 'wave: processor for each, without hand-outs';
const AFTER_WAVE = 'heap when each was refreshed';
const WAVE_PORTAL = 'wave: portal busy';
const CEILING = 'the portal by itself: refreshes';
const handOuts = (when: 'quiet' | 'wave') => (figure: 'p50' | 'p99') => `hand-outs, ${when}: ${figure}`;

/** What more grants cost. */
export const growthSuite: Suite = {
  name: 'growth',
  title: 'Growth: from ten grants to ten thousand',
  peers: [],
  programs: {},
  measure,
  report,
};

async function measure(bench: Bench): Promise<Measurement[]> {
  const { quick, subjects } = bench;
  const rounds = quick ? 1 : 5;
  const sizes = sizesOf(quick);
  const most = Math.max(...sizes);
  const measured = new Figures();
  await using parts = new AsyncDisposableStack();
  const lasting = parts.use(await startPortal(LONG));
  /** The largest ones, by subject. */
  const quiet = new Map<string, Household>();

  for (const size of sizes) {
    bench.progress(`growth: ${size} grants`);
    const households: (readonly [name: string, household: Household])[] = [];
    for (const subject of subjects) {
      const members = { home: { portal: lasting, count: size } };
      households.push([subject.name, parts.use(await setUpHousehold(subject, members, bench.scratch))]);
    }
    if (size === most) for (const [name, household] of households) quiet.set(name, household);
    await inTurns(rounds, households, ([name, household]) => atRest(name, household, size, quick, measured));
    await inTurns(rounds, subjects, async (subject) => {
      const { cost } = await refreshSteps(subject, size, quick ? 1000 : 20_000);
      measured.add(STEP(size), subject.name, 'µs', cost);
    });
  }

  const brief = parts.use(await startPortal(quick ? 3 : SHORT));
  const households: (readonly [name: string, household: Household])[] = [];
  for (const { name, root } of subjects) {
    bench.progress(`growth: ${most} grants that come due at once`);
    const members = { home: { portal: lasting, count: WHO_ASK }, wave: { portal: brief, count: most - WHO_ASK } };
    households.push([name, parts.use(await setUpHousehold({ name, root }, members, bench.scratch))]);
  }
  await inTurns(rounds, households, async ([name, busy], round) => {
    bench.progress(`growth: round ${round + 1} of ${rounds}: ${name} in quiet and in the wave`);
    const idle = quiet.get(name);
    if (idle === undefined) throw new Error(`there is no quiet hub of ${name}`);
    const each = await atQuiet(name, idle, quick, measured);
    await inWave(name, busy, brief, each, quick, measured);
  });
  for (const [name, household] of households) {
    bench.progress(`growth: ${name} when each was refreshed`);
    measured.add(AFTER_WAVE, name, 'kB', await afterWave(household, brief, most - WHO_ASK));
  }
  await inTurns(rounds, [SERVER_CORE], (core) => ceiling(core, quick, measured));
  return measured.all;
}

function sizesOf(quick: boolean): number[] {
  return quick ? [10, 100] : [10, 100, 1000, 10_000];
}

/** One start of a hub that has nothing to refresh. */
async function atRest(name: string, household: Household, size: number, quick: boolean, measured: Figures) {
  const startUp = await household.launch();
  measured.add(START(size), name, 'ms', startUp);
  measured.add(START_CPU(size), name, 'ms', processorTime(household.hub.pid));
  await sleep(quick ? 200 : 2000);
  const { heap, own } = await household.memory();
  measured.add(HEAP(size), name, 'kB', heap);
  measured.add(OWN(size), name, 'kB', own);
  await household.end();
}

/** Hand-outs of a hub that has nothing else to do. @returns its processor time for one, in ms */
async function atQuiet(name: string, household: Household, quick: boolean, measured: Figures): Promise<number> {
  await household.launch();
  const before = processorTime(household.hub.pid);
  const load = await askFor(household, name, quick);
  const each = (processorTime(household.hub.pid) - before) / load.sent;
  tell(handOuts('quiet'), name, load, measured);
  await household.end();
  return each;
}

/** The same while all other grants come due, again and again: the tokens live shorter than the hub needs for all of them. */
async function inWave(
  name: string,
  household: Household,
  portal: CountingPortal,
  handOut: number,
  quick: boolean,
  measured: Figures,
): Promise<void> {
  await household.launch();
  const { pid } = household.hub;
  const before = { answered: await portal.answered(), cpu: processorTime(pid), portal: portal.cpu() };
  const began = performance.now();
  const load = await askFor(household, name, quick);
  const took = performance.now() - began;
  const refreshes = (await portal.answered()) - before.answered;
  measured.add(WAVE, name, '1/s', (1000 * refreshes) / took, 'more');
  const cpu = processorTime(pid) - before.cpu - handOut * load.sent;
  measured.add(WAVE_CPU, name, 'µs', (1000 * cpu) / refreshes);
  measured.add(WAVE_PORTAL, name, '%', (100 * (portal.cpu() - before.portal)) / took);
  tell(handOuts('wave'), name, load, measured);
  await household.end();
}

/** Has each grant refreshed once. @returns the heap in use then, in kB */
async function afterWave(household: Household, portal: CountingPortal, count: number): Promise<number> {
  await portal.giveTokensFor(LONG);
  const before = await portal.answered();
  await household.launch();
  for (let tries = 0; (await portal.answered()) < before + count; tries += 1) {
    if (tries === LONGEST_WAVE) throw new Error(`${count} grants were not refreshed within ${LONGEST_WAVE} s`);
    await sleep(1000);
  }
  await sleep(1000);
  const { heap } = await household.memory();
  await household.end();
  return heap;
}

function tell(what: (figure: 'p50' | 'p99') => string, name: string, { p50, p99 }: Load, measured: Figures): void {
  measured.add(what('p50'), name, 'ms', p50);
  measured.add(what('p99'), name, 'ms', p99);
}

/** Some appliances ask for their tokens at even distances, each on a connection that it keeps. */
function askFor({ hub, fleet }: Household, name: string, quick: boolean): Promise<Load> {
  const [warmUp, seconds] = quick ? [0.5, 1] : [4, 10];
  const chains = fleet.slice(0, WHO_ASK).map((member) => {
    return { request: tokenRequest(hub.httpsPort, member), expected: '"access_token":"' };
  });
  const common = { port: hub.httpsPort, chains, secure: true };
  return runLoad(name, { ...common, rate: RATE, addresses: DEVICES, warmUp, seconds });
}

/** What the portal answers where it has a core of its own and as many refreshes at once as a hub sends it. */
async function ceiling(core: number, quick: boolean, measured: Figures): Promise<void> {
  await using portal = await startPortal(SHORT, core);
  const { baseUrl, frontendUrl, clientId } = portal;
  const clientSecret = new Secret(portal.clientSecret);
  await using client = new HttpPortal({ baseUrl, frontendUrl, clientId, clientSecret, ca: [] });
  const credentials = new URLSearchParams({ client_id: clientId, client_secret: portal.clientSecret });
  const { host, port } = new URL(frontendUrl);
  const type = 'Content-Type: application/x-www-form-urlencoded';
  const chains: Chain[] = [];
  for (let index = 0; index < AT_ONCE; index += 1) {
    const { tokens } = await granted(portal, client);
    const request = `POST /sso/token HTTP/1.1\r\nHost: ${host}\r\n${type}\r\n`;
    const token = tokens.refreshToken?.reveal() ?? '';
    chains.push({ request, form: `grant_type=refresh_token&${credentials}`, token });
  }
  const [warmUp, seconds] = quick ? [0.2, 0.5] : [2, 5];
  const job = { port: Number(port), chains, connections: 'new', warmUp, seconds } as const;
  const { rate } = await runLoad('the portal', job);
  measured.add(CEILING, 'the portal', '1/s', rate, 'more');
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string) => figures(measured, what, 'latchkey');
  const middle = (what: string) => median(of(what).values);
  const sizes = [10, 100, 1000, 10_000].filter((size) => measured.some(({ what }) => what === HEAP(size)));
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const perGrant = (what: (grants: number) => string) => (middle(what(most)) - middle(what(least))) / (most - least);
  const afterWave = (middle(AFTER_WAVE) - middle(HEAP(least))) / (most - least);
  const rate = middle(WAVE);
  const p99 = quotient(of(handOuts('wave')('p99')), of(handOuts('quiet')('p99')));
  const step = quotient(of(STEP(most)), of(STEP(least)));
  const targets: Target[] = [
    limit('memory for each grant: below 2 kB of heap', perGrant(HEAP), 'kB', 2, 2),
    limit('the same of resident memory', perGrant(OWN), 'kB', 2, 2),
    limit('the same of heap when each was refreshed', afterWave, 'kB', 2, 2),
    target(`deciding on a refresh: with ${most} grants at most 2 × what it takes with ${least}`, step, { atMost: 2 }),
    {
      text: `refreshes a second with ${most} grants: at least 500`,
      measured: rate.toFixed(0),
      verdict: rate >= 500 ? 'met' : 'not met',
    },
    target('p99 of hand-outs while all are refreshed: at most 2 × the quiet one', p99, { atMost: 2 }),
  ];
  return {
    targets,
    text: `
Hubs as the service runs them, with 10 to ${most} appliances, each with a grant of its own. *Heap* is what is in use after a full
collection, *own memory* what is resident then and no file backs, *start* from the start of the process to "hub started" with tokens
that are all good.

${growthTable(measured, sizes)}

*In the broker* is a refresh without portal, disk and machine: a timer fires on a clock that is moved by hand, what is due is found,
written to nowhere, answered at once, and planned again. Grants are spread so that each time one is due.

**The wave**: the tokens of all but ${WHO_ASK} grants live ${SHORT} s, which is less than the hub needs for all of them, so from its start on it
refreshes without a pause. Each refresh has a connection of its own, is written down before it is sent, and its result is on disk before
anybody sees it. The ${WHO_ASK} others have tokens that last; their appliances ask ${RATE} times a second together, over TLS. *Quiet* is the same load
on a hub with as many grants that has nothing to refresh.

${table(measured, [WAVE, WAVE_CPU, WAVE_PORTAL], ['latchkey'])}

${table(measured, [handOuts('quiet')('p50'), handOuts('quiet')('p99'), handOuts('wave')('p50'), handOuts('wave')('p99')], ['latchkey'])}

The portal with a core of its own answers ${told(figures(measured, CEILING, 'the portal'))} refreshes a second, ${AT_ONCE} at a time on new connections.`,
    pictures: {},
  };
}

function growthTable(measured: readonly Measurement[], sizes: readonly number[]): string {
  const of = (what: string) => told(figures(measured, what, 'latchkey'));
  const rows = sizes.map((size) =>
    [size, of(HEAP(size)), of(OWN(size)), of(START(size)), of(START_CPU(size)), of(STEP(size))].join(' | '),
  );
  const head = ['grants', 'heap, kB', 'own memory, kB', 'start, ms', 'start, processor, ms', 'in the broker, µs'];
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...rows.map((row) => `| ${row} |`)].join('\n');
}

function told({ values }: Pick<Measurement, 'values'>): string {
  return spread(values, Math.max(...values) >= 100 ? 0 : 1);
}

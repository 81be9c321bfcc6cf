import { startEmulator } from '../../../src/emulator/index.ts';
import { measurementTable } from '../benchmarks-page.ts';
import { type LoadParameters, runLoad } from '../load.ts';
import { writeTlsOptions } from '../peers.ts';
import { median, ratioOf } from '../statistics.ts';
import {
  type BenchOptions,
  findMeasurement,
  type Measurement,
  MeasurementCollector,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
  type Target,
} from '../suite.ts';
import { startBareFastify, startHub, startOidcProvider, type TokenServer } from './servers.ts';

const CHAINS = 16;
/** Several devices, because the hub limits the connections of each one. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];
/** In s: longer than any run, so that nothing is refreshed. */
const TOKEN_LIFETIME = 7 * 86_400;
/** If the load generator's core is busier than this, in %, the generator limits the rate, and not the server. */
const LOAD_BOUND = 90;

const KEPT = 'keep-alive';
const NEW = 'new connection';
const HALF = 'half load';
const BARE = 'bare fastify';
const PROVIDER = 'oidc-provider';
const CPU_TIME = 'CPU time';
const GENERATOR_BUSY = "load generator's core busy";

/** Token requests over HTTPS, compared with a bare fastify server and with another authorization server. */
export const handOutSuite: Suite = {
  name: 'hand-out',
  title: 'Issuing a token',
  programs: {},
  measure,
  report,
};

async function measure(bench: BenchOptions): Promise<Measurement[]> {
  const { quick, subjects } = bench;
  const rounds = quick ? 1 : 7;
  const measured = new MeasurementCollector();
  const tls = await writeTlsOptions(bench.scratch);
  await using emulator = await startEmulator({ tokenLifetime: TOKEN_LIFETIME });
  await using running = new AsyncDisposableStack();
  const hub = running.use(await startHub(subjects[0], emulator, CHAINS));
  const hubs = [hub];
  for (const subject of subjects.slice(1)) hubs.push(running.use(await startHub(subject, emulator, CHAINS)));
  const bare = running.use(await startBareFastify(tls, hub.answer, CHAINS));
  const provider = running.use(await startOidcProvider(tls, CHAINS));
  const all = [...hubs, bare, provider];

  const load = async (server: TokenServer, what: string, more: Pick<LoadParameters, 'connections' | 'rate'>) => {
    const { port, chains } = server;
    const time = quick ? { warmUp: 0.1, seconds: 0.3 } : { warmUp: 1, seconds: 3 };
    const before = server.cpu();
    const job = { port, chains, addresses: DEVICES, ...time, ...more };
    const result = await runLoad(`${server.name}, ${what}`, job);
    if (more.rate === undefined) {
      measured.add(`${what}: requests`, server.name, '1/s', result.rate, 'more');
      measured.add(`${what}: ${GENERATOR_BUSY}`, server.name, '%', 100 * result.busy);
    }
    measured.add(`${what}: p50`, server.name, 'ms', result.p50);
    measured.add(`${what}: p99`, server.name, 'ms', result.p99);
    measured.add(`${what}: ${CPU_TIME}`, server.name, 'µs', (1000 * (server.cpu() - before)) / result.sent);
  };

  for (const [what, connections] of [
    [KEPT, 'kept'],
    [NEW, 'new'],
  ] as const) {
    bench.progress(`hand-out: ${what}, ${rounds} rounds of ${all.length} servers`);
    await runRounds(rounds, all, (server) => load(server, what, { connections }));
  }
  const rate = median(findMeasurement(measured.all, `${KEPT}: requests`, hub.name).values) / 2;
  bench.progress(`hand-out: ${rate.toFixed(0)} requests per second, ${rounds} rounds`);
  await runRounds(rounds, [...hubs, bare], (server) => load(server, HALF, { rate }));
  measured.add(`${HALF}: requests`, hub.name, '1/s', rate, 'more');

  return measured.all;
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string, name: string) => findMeasurement(measured, what, name);
  /** Compares the rates or, if the load generator limits them, the server's CPU time per request. */
  const faster = (what: string, peer: string, words: string, atLeast: number): Target => {
    const busy = ['latchkey', peer].map((name) => median(of(`${what}: ${GENERATOR_BUSY}`, name).values));
    const byRate = Math.max(...busy) <= LOAD_BOUND;
    const compared = byRate
      ? ratioOf(of(`${what}: requests`, 'latchkey'), of(`${what}: requests`, peer))
      : ratioOf(of(`${what}: ${CPU_TIME}`, peer), of(`${what}: ${CPU_TIME}`, 'latchkey'));
    const by = byRate ? '' : ' of CPU time';
    return ratioTarget(`${words}, per second${by}: at least ${atLeast} × ${peer}'s`, compared, { atLeast });
  };
  const slower = ratioTarget(
    `p99 at half of Latchkey's capacity: at most 1.5 × ${BARE}'s`,
    ratioOf(of(`${HALF}: p99`, 'latchkey'), of(`${HALF}: p99`, BARE)),
    { atMost: 1.5 },
  );
  const names = ['latchkey', BARE, PROVIDER];
  const under = (what: string) => ['requests', 'p50', 'p99', CPU_TIME, GENERATOR_BUSY].map((one) => `${what}: ${one}`);
  return {
    targets: [
      faster(KEPT, BARE, 'token requests on persistent connections', 0.75),
      faster(NEW, BARE, 'token requests with a new connection each', 0.9),
      faster(KEPT, PROVIDER, 'token requests on persistent connections', 5),
      slower,
    ],
    tables: [
      ...[under(KEPT), under(NEW)].map((whats) => measurementTable(measured, whats, names)),
      measurementTable(measured, under(HALF).slice(0, 4), ['latchkey', BARE]),
    ],
  };
}

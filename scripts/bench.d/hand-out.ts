import { startEmulator } from '../../src/emulator/index.ts';
import { measurementTable } from './benchmarks-page.ts';
import { pairAppliances, startHub, tokenLoops } from './hub.ts';
import { type LoadParameters, type RequestLoop, runLoad } from './load.ts';
import { BARE_FASTIFY, startBareFastify, writeTlsOptions } from './peers.ts';
import { cpuTime } from './program.ts';
import {
  type BenchOptions,
  LATCHKEY,
  type Measurements,
  type Report,
  ratioTarget,
  runRounds,
  type Suite,
} from './suite.ts';

const APPLIANCES = 5;
/** Several devices, because the hub limits the connections of each one. */
const DEVICES = ['127.0.0.11', '127.0.0.12', '127.0.0.13', '127.0.0.14'];
/** In s: longer than any run, so that nothing is refreshed. */
const TOKEN_LIFETIME = 7 * 86_400;

const KEPT = 'keep-alive';
const NEW = 'new connection';
const HALF = 'half load';
const CPU_TIME = 'CPU time';
const GENERATOR_BUSY = "load generator's core busy";

/** Token requests over HTTPS, compared with a bare fastify server. */
export const handOutSuite: Suite = { name: 'hand-out', title: 'Issuing a token', measure, report };

/** A server that issues tokens over HTTPS. */
interface TokenServer {
  readonly row: string;
  readonly of: string;
  readonly pid: number;
  readonly port: number;
  readonly loops: readonly RequestLoop[];
}

async function measure({ quick, subjects, scratch, progress }: BenchOptions, measured: Measurements): Promise<void> {
  const rounds = quick ? 1 : 7;
  await using running = new AsyncDisposableStack();
  const emulator = running.use(await startEmulator({ tokenLifetime: TOKEN_LIFETIME }));
  const servers: TokenServer[] = [];
  let response = {};
  for (const subject of subjects) {
    const hub = running.use(await startHub(subject, { emulator }));
    const appliances = await pairAppliances(hub, emulator, APPLIANCES);
    for (const appliance of appliances) response = (await hub.requestToken(appliance)).body;
    const { pid, httpsPort: port } = hub;
    servers.push({ row: LATCHKEY, of: subject.name, pid, port, loops: tokenLoops(port, appliances) });
  }
  const bare = running.use(await startBareFastify(await writeTlsOptions(scratch), response));
  servers.push({ ...bare, row: BARE_FASTIFY, of: LATCHKEY });

  const load = async (server: TokenServer, what: string, more: Pick<LoadParameters, 'connections' | 'rate'>) => {
    const { row, of, pid, port, loops } = server;
    const time = quick ? { warmUp: 0.1, seconds: 0.3 } : { warmUp: 1, seconds: 3 };
    const before = cpuTime(pid);
    const { rate, busy, p50, p99, sent } = await runLoad(row, { port, loops, addresses: DEVICES, ...time, ...more });
    if (more.rate === undefined) {
      measured.add(row, `${what}: requests`, '1/s', rate, { of, better: 'more' });
      measured.add(row, `${what}: ${GENERATOR_BUSY}`, '%', 100 * busy, { of });
    }
    measured.add(row, `${what}: p50`, 'ms', p50, { of });
    measured.add(row, `${what}: p99`, 'ms', p99, { of });
    measured.add(row, `${what}: ${CPU_TIME}`, 'µs', (1000 * (cpuTime(pid) - before)) / sent, { of });
  };

  progress(`hand-out: ${KEPT}, ${rounds} rounds`);
  await runRounds(rounds, servers, (server) => load(server, KEPT, { connections: 'kept' }));
  progress(`hand-out: ${NEW}, ${rounds} rounds`);
  await runRounds(rounds, servers, (server) => load(server, NEW, { connections: 'new' }));
  const rate = measured.median(LATCHKEY, `${KEPT}: requests`) / 2;
  progress(`hand-out: ${rate.toFixed(0)} requests per second, ${rounds} rounds`);
  await runRounds(rounds, servers, (server) => load(server, HALF, { rate }));
  measured.add(LATCHKEY, `${HALF}: requests`, '1/s', rate, { better: 'more' });
}

function report(measured: Measurements): Report {
  const tail = measured.ratio(LATCHKEY, BARE_FASTIFY, `${HALF}: p99`);
  const table = (load: string, whats: readonly string[]) =>
    measurementTable(
      measured,
      [LATCHKEY, BARE_FASTIFY],
      whats.map((what) => `${load}: ${what}`),
    );
  const whats = ['requests', 'p50', 'p99', CPU_TIME];
  return {
    targets: [
      ratioTarget(
        `token requests on persistent connections, per second: at least 0.7 × ${BARE_FASTIFY}'s`,
        measured.ratio(LATCHKEY, BARE_FASTIFY, `${KEPT}: requests`),
        { atLeast: 0.7 },
      ),
      ratioTarget(`p99 at half of Latchkey's capacity: at most 2 × ${BARE_FASTIFY}'s`, tail, { atMost: 2 }),
    ],
    tables: [table(KEPT, [...whats, GENERATOR_BUSY]), table(NEW, [...whats, GENERATOR_BUSY]), table(HALF, whats)],
  };
}

import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { measurementTable } from './benchmarks-page.ts';
import { runLoad, tokenRequest } from './load.ts';
import { residentMemory, startProgram } from './program.ts';
import {
  type BenchOptions,
  formatRatio,
  LATCHKEY,
  type Measurements,
  type Report,
  runRounds,
  type Suite,
} from './suite.ts';

const MOCK_SERVER = 'oauth2-mock-server';
const MOCK_SERVER_VERSION = '9.3.0';
const JWT = 'latchkey, JWTs';
const CLIENT = { client_id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', client_secret: 'bench-secret' };
const CONNECTIONS = 16;

const START = 'start';
const IDLE = 'resident memory after the start';
const RATE = 'token requests';
const LOADED = 'resident memory after the load';
const COLUMNS = [START, IDLE, RATE, LOADED];

const FULL = { rounds: 7, settling: 2, warmUp: 2, seconds: 5 };
const QUICK: typeof FULL = { rounds: 1, settling: 0, warmUp: 1, seconds: 2 };

/** The emulator beside another mock server, which a developer of an OAuth client may choose. */
export const emulatorSuite: Suite = { name: 'emulator', title: 'The emulator', measure, report };

interface Server {
  readonly row: string;
  readonly of: string;
  readonly command: readonly string[];
  /** The path of its token endpoint. */
  readonly path: string;
}

async function measure({ quick, subjects, scratch, progress }: BenchOptions, measured: Measurements): Promise<void> {
  const plan = quick ? QUICK : FULL;
  const options = ['--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', '--prefer-offline'];
  execFileSync('npm', ['install', '--prefix', scratch, ...options, `${MOCK_SERVER}@${MOCK_SERVER_VERSION}`]);
  const credentials = `${CLIENT.client_id}:${CLIENT.client_secret}`;
  const servers: Server[] = subjects.flatMap(({ name: of, root }) => {
    const emulator = [process.execPath, join(root, 'dist/main.js'), 'emulator', '--json', '--client', credentials];
    return [
      { row: LATCHKEY, of, command: emulator, path: '/oauth2/token' },
      { row: JWT, of, command: [...emulator, '--access-token-format', 'jwt'], path: '/oauth2/token' },
    ];
  });
  const module = join(scratch, 'node_modules', MOCK_SERVER, 'dist/index.mjs');
  const mockServer = [process.execPath, join(import.meta.dirname, 'peers/oauth2-mock-server.mjs'), module];
  servers.push({ row: MOCK_SERVER, of: LATCHKEY, command: mockServer, path: '/token' });
  await runRounds(plan.rounds, servers, async ({ row, of, command, path }, round) => {
    progress(`emulator: ${row} of ${of}: round ${round + 1} of ${plan.rounds}`);
    await using server = await startProgram(command, process.env);
    measured.add(row, START, 'ms', server.startUp, { of });
    await sleep(1000 * plan.settling);
    measured.add(row, IDLE, 'MB', residentMemory(server.pid).all, { of });
    const said = JSON.parse(server.said) as { readonly port?: number; readonly frontend_url?: string };
    const port = said.port ?? Number(new URL(said.frontend_url ?? '').port);
    const loops = Array.from({ length: CONNECTIONS }, () => ({ request: tokenRequest(port, CLIENT, path) }));
    const load = await runLoad(row, { port, tls: false, loops, warmUp: plan.warmUp, seconds: plan.seconds });
    measured.add(row, RATE, '1/s', load.rate, { of, better: 'more' });
    measured.add(row, LOADED, 'MB', residentMemory(server.pid).all, { of });
  });
}

function report(measured: Measurements): Report {
  const ratios = [LATCHKEY, JWT].map((row) => {
    const cells = COLUMNS.map((what) => formatRatio(measured.ratio(row, MOCK_SERVER, what)));
    return `| ${[row, ...cells].join(' | ')} |`;
  });
  const head = [`| divided by ${MOCK_SERVER} | ${COLUMNS.join(' | ')} |`, `|${'---|'.repeat(COLUMNS.length + 1)}`];
  return {
    targets: [],
    tables: [[...head, ...ratios].join('\n'), measurementTable(measured, [LATCHKEY, JWT, MOCK_SERVER], COLUMNS)],
  };
}

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { runLoad } from '../load.ts';
import { table } from '../page.ts';
import { bars } from '../plot.ts';
import { Figures, inTurns } from '../rounds.ts';
import { median, quotient } from '../statistics.ts';
import { type Bench, figures, type Measurement, type Report, type Suite, target } from '../suite.ts';
import { PEER_NAMES, type Server, startServer, warmUp } from './servers.ts';

const CHAINS = 16;
const REFRESH = 'refresh';
const POLL = 'poll';
const START = 'start-up';
const MEMORY = 'resident when idle';

/** The portal emulator beside its like. */
export const emulatorSuite: Suite = {
  name: 'emulator',
  title: 'The portal emulator',
  peers: ['oidc-provider', 'oauth2-mock-server', 'fastify'],
  programs: {},
  measure,
  report,
};

async function measure(bench: Bench): Promise<Measurement[]> {
  const { quick, subjects } = bench;
  const rounds = quick ? 1 : 5;
  const all = [...subjects, ...PEER_NAMES];
  const measured = new Figures();
  const caches = (name: string) => join(bench.scratch, name.replaceAll(' ', '-'));
  for (const subject of subjects) await warmUp(subject, caches(subject.name));

  async function start(which: (typeof all)[number], label: string, cache: string): Promise<void> {
    await using server = await startServer(which, 0, cache);
    await sleep(quick ? 50 : 500);
    measured.add(START, label, 'ms', server.startUp);
    measured.add(`${START}: processor`, label, 'ms', server.startCpu);
    measured.add(MEMORY, label, 'MB', server.memory());
  }
  const nameOf = (which: (typeof all)[number]) => (typeof which === 'string' ? which : which.name);
  await inTurns(rounds, all, (which) => start(which, nameOf(which), caches(nameOf(which))));
  // A process that is killed keeps nothing, so each of these is a first start.
  await inTurns(rounds, subjects, (subject) => start(subject, `${subject.name}, first start`, caches('cold')));

  await using running = new AsyncDisposableStack();
  const servers: Server[] = [];
  for (const which of all) servers.push(running.use(await startServer(which, CHAINS, caches(nameOf(which)))));
  for (const what of [REFRESH, POLL] as const) {
    bench.progress(`emulator: ${what}, ${rounds} rounds of ${servers.length} servers`);
    await inTurns(rounds, servers, async (server) => load(server, what, quick, measured));
  }
  for (const server of servers) measured.add('resident after the run', server.name, 'MB', server.memory());
  return measured.all;
}

/** One round of load on a server; its refresh tokens move on. */
async function load(
  server: Server,
  what: typeof REFRESH | typeof POLL,
  quick: boolean,
  measured: Figures,
): Promise<void> {
  const aimed = server[what];
  if (aimed === null) return;
  const cpuBefore = server.cpu();
  const { port, status, chains } = aimed;
  const job = { port, status, chains, warmUp: quick ? 0.2 : 1, seconds: quick ? 0.5 : 3 };
  const result = await runLoad(`${server.name}, ${what}`, job);
  aimed.chains = chains.map((chain, index) => ({ ...chain, token: result.tokens[index] ?? '' }));
  measured.add(`${what}: requests`, server.name, '1/s', result.rate, 'more');
  measured.add(`${what}: p50`, server.name, 'ms', result.p50);
  measured.add(`${what}: p99`, server.name, 'ms', result.p99);
  measured.add(`${what}: processor`, server.name, 'µs', (1000 * (server.cpu() - cpuBefore)) / result.sent);
  measured.add(`${what}: load's core busy`, server.name, '%', 100 * result.busy);
}

function report(measured: readonly Measurement[]): Report {
  const of = (what: string, name: string) => figures(measured, what, name);
  const faster = (what: string, words: string, peer: string, atLeast: number) =>
    target(
      `${words} a second: at least ${atLeast} × ${peer}'s`,
      quotient(of(`${what}: requests`, 'latchkey'), of(`${what}: requests`, peer)),
      { atLeast },
    );
  const least = (what: string, words: string) => {
    const peers = ['oidc-provider', 'oauth2-mock-server'].map((name) => of(what, name));
    const best = peers.reduce((one, other) => (median(other.values) < median(one.values) ? other : one));
    return target(`${words}: below both peers' (${best.of})`, quotient(of(what, 'latchkey'), best), { atMost: 1 });
  };
  const under = (what: string) =>
    ['requests', 'p50', 'p99', 'processor', "load's core busy"].map((one) => `${what}: ${one}`);
  const names = ['latchkey', ...PEER_NAMES];
  return {
    targets: [
      faster(REFRESH, 'refreshes', 'oidc-provider', 5),
      faster(REFRESH, 'refreshes', 'bare fastify', 0.5),
      faster(POLL, 'polls of code/get', 'bare fastify', 0.5),
      least(START, 'start-up'),
      least(MEMORY, 'resident when idle'),
    ],
    text: `
Every server is a process of its own on one core, the load is one on another; ${CHAINS} connections, one request at a time on
each, over raw sockets. Every refresh presents the refresh token that the answer before gave, so rotation is really done
where there is any. A single bad answer would end the run. *Processor* is the server's own time for one request.

![Processor time of one refresh](images/bench-emulator.svg)

\`POST /sso/token\`, \`grant_type=refresh_token\`:

${table(measured, under(REFRESH), names)}

oidc-provider rotates (\`rotateRefreshToken: true\`) in its in-memory adapter and signs no ID token here (no scope
\`openid\`). oauth2-mock-server signs an RS256 access token, checks no refresh token and rotates none. The bare
fastify server reads the form and answers a constant. The emulator keeps its log of requests and all that a judge counts.

\`GET /external/oauth2helper/code/get\`, nobody has logged in yet:

${table(measured, under(POLL), ['latchkey', 'bare fastify'])}

The emulator checks the signature of a state when it first comes, and its client and expiry every time; the bare fastify
server answers a constant. The others have no such endpoint.

${table(measured, [START, `${START}: processor`, MEMORY, 'resident after the run'], ['latchkey', 'latchkey, first start', ...PEER_NAMES])}

Start-up is from the start of the process to the line that says where it listens. The emulator's is that of the whole
command line, \`latchkey emulator\`, which keeps its compiled code for the next start; that of the others is the least
that serves.`,
    pictures: {
      'bench-emulator': bars(
        'Processor time of one refresh, µs (shorter is better)',
        names.map((name) => [name, median(of(`${REFRESH}: processor`, name).values)]),
      ),
    },
  };
}

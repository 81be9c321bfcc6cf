// The hub that is fuzzed, with an emulator as its portal.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { type ConnectionOptions, connect as secureConnect } from 'node:tls';
import fc from 'fast-check';
import { request } from 'undici';
import type { Dial } from '../exchange.ts';
import type { FuzzRequest } from '../requests.ts';
import type { Part, Subject } from '../run.ts';
import { type Credentials, learn } from './facts.ts';
import { beginHub, goodHubFlow, introduceWaiting, tidy } from './flows.ts';
import { type FuzzedHome, type HubPorts, startHome } from './home.ts';
import { wrongOf } from './judge.ts';
import { person, witness } from './meanwhile.ts';
import { hubRequests } from './plans.ts';
import { troublePortal, watchPortal } from './portal.ts';

/** Requests that meet the portal's trouble between two parts. */
const MET = 100;
/** The hub waits for the portal as long as it may, so that only some parts have trouble. */
const TROUBLE_EVERY = 5;
/** Bytes of log that a run of any length may come to: bursts are told once. */
const LONGEST_LOG = 50_000_000;

/** Starts the built hub. */
export async function startHubSubject(): Promise<Subject> {
  const home = await startHome();
  const { hub } = home;
  // It must not outlive the fuzz, however that ends.
  process.once('exit', () => {
    if (hub.pid > 0 && hub.ended === null) process.kill(hub.pid, 'SIGKILL');
  });
  return await hubSubject(home);
}

/** The hub of a home, and with it the home. */
export async function hubSubject(home: FuzzedHome): Promise<Subject> {
  const { agent, hub, ports } = home;
  const waiting = await introduceWaiting(home);
  return {
    name: 'hub',
    async description() {
      const { body } = await request(`https://127.0.0.1:${ports.httpsPort}/openapi.json`, { dispatcher: agent });
      return body.json();
    },
    begin: () => beginPart(home, waiting),
    memory: home.memory,
    ended: () => hub.ended,
    complaints: () => complaintsIn(readFileSync(hub.log, 'utf8')),
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

async function beginPart(home: FuzzedHome, waiting: Credentials): Promise<Part> {
  const judgePortal = watchPortal(home);
  const { facts, secrets, served } = await beginHub(home, waiting);
  const requests = hubRequests(facts);
  return {
    requests,
    // The hub cuts off who sends more than 32.
    pipelined: 24,
    // One TLS record: Node takes what comes behind it for no HTTP where answers wait to be read (HPE_PAUSED).
    pipelinedBytes: 16_000,
    dial: (request) => hubDial(home.ports, request),
    wrong(operation, request, answer) {
      if (answer.status < 400) learn(facts, request, answer.text);
      return wrongOf(operation, request, answer, secrets);
    },
    settle: async () => {},
    async meanwhile(over) {
      await Promise.all([person(home, facts.known, over), witness(home, served, over)]);
    },
    async end(turn, seed, send) {
      if ((turn + 1) % TROUBLE_EVERY === 0) {
        const met = fc.sample(requests, { seed, numRuns: MET });
        await troublePortal(home, (turn + 1) / TROUBLE_EVERY - 1, () => send(met));
      }
      await goodHubFlow(home, waiting);
      await tidy(home);
      judgePortal();
    },
  };
}

/** The session of the last handshake, which the next one resumes as appliances do. */
let session: Buffer | undefined;

/** Opens the connection for a request. */
function hubDial({ httpPort, httpsPort, ca }: HubPorts, { origin, via }: FuzzRequest): Dial {
  return () => {
    const port = origin === 'https' ? httpsPort : httpPort;
    const localAddress = via?.address ?? '127.0.0.1';
    const tcp = connect({ host: '127.0.0.1', port, localAddress, noDelay: true });
    const reset = () => (tcp.destroyed ? undefined : tcp.resetAndDestroy());
    if (via?.plain ?? origin === 'http') return { socket: tcp, ready: 'connect', reset };
    const options: ConnectionOptions = { socket: tcp, ca, checkServerIdentity: () => undefined };
    if (via?.servername !== undefined) options.servername = via.servername;
    if (session !== undefined) options.session = session;
    const socket = secureConnect(options);
    socket.once('session', (next: Buffer) => {
      session = next;
    });
    // The TLS connection tells of its errors; what the one below says of the same is heard by nobody.
    tcp.on('error', () => undefined);
    return { socket, ready: 'secureConnect', reset };
  };
}

/** The errors that a hub's log tells of, the first ones. */
export function complaintsIn(log: string): string {
  if (log.length > LONGEST_LOG) return `the log has ${log.length} bytes`;
  const errors = log.split('\n').filter((line) => /"level":"(error|fatal)"/.test(line));
  return errors.slice(0, 10).join('\n');
}

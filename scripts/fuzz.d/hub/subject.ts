// The fuzzed hub, with an emulator as its portal.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { type ConnectionOptions, connect as secureConnect } from 'node:tls';
import fc from 'fast-check';
import { request } from 'undici';
import type { Dial } from '../exchange.ts';
import type { FuzzRequest } from '../requests.ts';
import type { FuzzPart, FuzzSubject } from '../run.ts';
import { logInContinuously, requestTokensContinuously } from './background-clients.ts';
import { type FuzzCredentials, learnFromExchange } from './facts.ts';
import { checkGoodHubFlow, registerUnapproved, removeRegistered, setUpHub } from './flows.ts';
import { type FuzzedHub, type HubPorts, startFuzzedHub } from './fuzzed-hub.ts';
import { hubRequests } from './plans.ts';
import { disturbPortal, limitPortalRequests } from './portal.ts';
import { checkResponse } from './response-check.ts';

/** Requests during a portal fault at the end of a part. */
const REQUESTS_DURING_FAULT = 100;
/** Only some parts have a fault, because the hub then waits for the portal up to its timeout. */
const PARTS_PER_FAULT = 5;
/** The maximum size of the log in bytes, for runs of any length, because the hub limits repeated lines. */
const MAX_LOG_BYTES = 50_000_000;

/** Starts the built hub. */
export async function startHubSubject(): Promise<FuzzSubject> {
  const home = await startFuzzedHub();
  const { hub } = home;
  // The hub must not outlive the fuzz, however it ends.
  process.once('exit', () => {
    if (hub.pid > 0 && hub.ended === null) process.kill(hub.pid, 'SIGKILL');
  });
  return await hubSubject(home);
}

/** The subject for the hub of a home. Disposing of it disposes of the home. */
export async function hubSubject(home: FuzzedHub): Promise<FuzzSubject> {
  const { agent, hub, ports } = home;
  const waiting = await registerUnapproved(home);
  return {
    name: 'hub',
    async description() {
      const { body } = await request(`https://127.0.0.1:${ports.httpsPort}/openapi.json`, { dispatcher: agent });
      return body.json();
    },
    begin: () => beginPart(home, waiting),
    memory: home.memory,
    ended: () => hub.ended,
    complaints: () => errorsInLog(readFileSync(hub.log, 'utf8')),
    [Symbol.asyncDispose]: () => home[Symbol.asyncDispose](),
  };
}

async function beginPart(home: FuzzedHub, waiting: FuzzCredentials): Promise<FuzzPart> {
  const checkPortalRequests = limitPortalRequests(home);
  const { facts, secrets, served } = await setUpHub(home, waiting);
  const requests = hubRequests(facts);
  return {
    requests,
    // The hub closes a connection with more than 32 requests in flight.
    pipelined: 24,
    // One TLS record: Node fails on later data (HPE_PAUSED) if responses have not been read yet.
    pipelinedBytes: 16_000,
    dial: (request) => hubDial(home.ports, request),
    wrong(operation, request, answer) {
      if (answer.status < 400) learnFromExchange(facts, request, answer.text);
      return checkResponse(operation, request, answer, secrets);
    },
    settle: async () => {},
    async meanwhile(over) {
      await Promise.all([logInContinuously(home, facts.known, over), requestTokensContinuously(home, served, over)]);
    },
    async end(turn, seed, send) {
      if ((turn + 1) % PARTS_PER_FAULT === 0) {
        const sample = fc.sample(requests, { seed, numRuns: REQUESTS_DURING_FAULT });
        await disturbPortal(home, (turn + 1) / PARTS_PER_FAULT - 1, () => send(sample));
      }
      await checkGoodHubFlow(home, waiting);
      await removeRegistered(home);
      checkPortalRequests();
    },
  };
}

/** The TLS session of the last handshake, which the next one resumes, as appliances do. */
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
    // The TLS socket reports errors; the same errors of the TCP socket are ignored.
    tcp.on('error', () => undefined);
    return { socket, ready: 'secureConnect', reset };
  };
}

/** The first ten errors in a hub's log. */
export function errorsInLog(log: string): string {
  if (log.length > MAX_LOG_BYTES) return `the log has ${log.length} bytes`;
  const errors = log.split('\n').filter((line) => /"level":"(error|fatal)"/.test(line));
  return errors.slice(0, 10).join('\n');
}

import type { Emulator } from '../../../src/emulator/index.ts';
import type { HubProcess } from '../../../test/support/hub-process.ts';
import { prepareHub, storedFleetCode } from '../hub.ts';
import { type RequestLoop, tokenRequest } from '../load.ts';
import { PEER_CLIENT, startPeer } from '../peers.ts';
import { cpuTime, type Program } from '../program.ts';
import type { BenchSubject } from '../suite.ts';

const APPLIANCES = ['wallbox', 'heat-pump', 'inverter', 'meter', 'boiler'];

/** A server that issues tokens over HTTPS. */
export interface TokenServer extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  /** One request loop per connection. */
  readonly chains: readonly RequestLoop[];
  /** CPU time since its start, in ms. */
  cpu(): number;
}

/** A hub, and an example of its token response. */
interface HubServer extends TokenServer {
  readonly answer: Readonly<Record<string, unknown>>;
}

/** Starts a hub like the service, with paired appliances whose tokens outlive the run. */
export async function startHub(subject: BenchSubject, emulator: Emulator, chains: number): Promise<HubServer> {
  await using started = new AsyncDisposableStack();
  const hub: HubProcess = started.use(await prepareHub(subject, { emulator }));
  const { storeFleet } = await storedFleetCode(subject);
  const fleet = await storeFleet(hub, emulator, APPLIANCES, 0);
  await hub.launch();
  const responses = await Promise.all(
    fleet.map(async (member) => {
      const { status, body } = await hub.requestToken(member);
      if (status !== 200) throw new Error(`${subject.name} responds ${status}: ${JSON.stringify(body)}`);
      return { member, answer: body };
    }),
  );
  const [first] = responses;
  if (first === undefined) throw new Error('there are no appliances');
  const { httpsPort: port } = hub;
  const resources = started.move();
  return {
    name: subject.name,
    pid: hub.pid,
    port,
    answer: first.answer,
    chains: Array.from({ length: chains }, (_, index) => {
      const { member, answer } = responses[index % responses.length] ?? first;
      return { request: tokenRequest(port, member), expected: `"access_token":"${answer['access_token']}"` };
    }),
    cpu: () => cpuTime(hub.pid),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** Starts a fastify server that sends a constant response, with the flags and variables of the service. */
export async function startBareFastify(
  tls: string,
  answer: Readonly<Record<string, unknown>>,
  chains: number,
): Promise<TokenServer> {
  const program = await startPeer('bare-fastify-https.js', [tls, JSON.stringify(answer)]);
  return peer('bare fastify', program, chains, `"access_token":"${answer['access_token']}"`);
}

/** Starts oidc-provider with Node's default flags, so that its memory is not limited. */
export async function startOidcProvider(tls: string, chains: number): Promise<TokenServer> {
  const client = [PEER_CLIENT.client_id, PEER_CLIENT.client_secret];
  const program = await startPeer('oidc-provider-https.js', [tls, ...client], { flags: [], env: {} });
  return peer('oidc-provider', program, chains, '"access_token":"');
}

function peer(name: string, program: Program, chains: number, expected: string): TokenServer {
  const { port, path } = JSON.parse(program.said) as { port: number; path: string };
  return {
    name,
    pid: program.pid,
    port,
    chains: Array.from({ length: chains }, () => ({ request: tokenRequest(port, PEER_CLIENT, path), expected })),
    cpu: () => cpuTime(program.pid),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

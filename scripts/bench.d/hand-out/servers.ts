import { join } from 'node:path';
import type { Emulator } from '../../../src/emulator/index.ts';
import { storeFleet } from '../../../test/reliability/stored-fleet.ts';
import type { HubProcess } from '../../../test/support/hub-process.ts';
import { prepareHub, SERVICE_FLAGS } from '../hub.ts';
import { type Chain, tokenRequest } from '../load.ts';
import { processorTime, startProgram } from '../program.ts';
import type { Subject } from '../suite.ts';

const PEERS = join(import.meta.dirname, '../peers');
const APPLIANCES = ['wallbox', 'heat-pump', 'inverter', 'meter', 'boiler'];
/** The client that peers know. */
const PROVIDER_CLIENT = { client_id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', client_secret: 'bench-secret' };

/** Gives tokens over HTTPS. */
export interface TokenServer extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  readonly port: number;
  /** One for each of those who ask. */
  readonly chains: readonly Chain[];
  /** Processor time used since its start, in ms. */
  cpu(): number;
}

/** A hub, and what it answers, but for the names of the members. */
interface HubServer extends TokenServer {
  readonly answer: Readonly<Record<string, unknown>>;
}

/** A hub as the service runs it, with paired appliances whose tokens are good for long enough. */
export async function startHub(subject: Subject, emulator: Emulator, chains: number): Promise<HubServer> {
  await using started = new AsyncDisposableStack();
  const hub: HubProcess = started.use(await prepareHub(subject, { emulator }));
  const fleet = await storeFleet(hub, emulator, APPLIANCES, 0);
  await hub.launch();
  const asked = await Promise.all(
    fleet.map(async (member) => {
      const { status, body } = await hub.requestToken(member);
      if (status !== 200) throw new Error(`${subject.name} answers ${status}: ${JSON.stringify(body)}`);
      return { member, answer: body };
    }),
  );
  const [first] = asked;
  if (first === undefined) throw new Error('there are no appliances');
  const { httpsPort: port } = hub;
  const resources = started.move();
  return {
    name: subject.name,
    pid: hub.pid,
    port,
    answer: first.answer,
    chains: Array.from({ length: chains }, (_, index) => {
      const { member, answer } = asked[index % asked.length] ?? first;
      return { request: tokenRequest(port, member), expected: `"access_token":"${answer['access_token']}"` };
    }),
    cpu: () => processorTime(hub.pid),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** What a fastify server costs that answers the same constant to everybody; the flags are the service's. */
export async function startBareFastify(
  tls: string,
  answer: Readonly<Record<string, unknown>>,
  chains: number,
): Promise<TokenServer> {
  const command = [...SERVICE_FLAGS, join(PEERS, 'bare-fastify-https.js'), tls, JSON.stringify(answer)];
  return peer('bare fastify', command, chains, `"access_token":"${answer['access_token']}"`);
}

/** oidc-provider with Node's own flags: it is given what it may need. */
export async function startOidcProvider(tls: string, chains: number): Promise<TokenServer> {
  const client = [PROVIDER_CLIENT.client_id, PROVIDER_CLIENT.client_secret];
  const command = [join(PEERS, 'oidc-provider-https.js'), tls, ...client];
  return peer('oidc-provider', command, chains, '"access_token":"');
}

async function peer(name: string, command: readonly string[], chains: number, expected: string): Promise<TokenServer> {
  const program = await startProgram([process.execPath, ...command], { ready: (line) => line.startsWith('{') });
  const { port, path } = JSON.parse(program.said) as { port: number; path: string };
  return {
    name,
    pid: program.pid,
    port,
    chains: Array.from({ length: chains }, () => ({ request: tokenRequest(port, PROVIDER_CLIENT, path), expected })),
    cpu: () => processorTime(program.pid),
    [Symbol.asyncDispose]: () => program[Symbol.asyncDispose](),
  };
}

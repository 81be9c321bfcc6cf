// The fuzzed home: a hub in its own process, an emulator as its portal, and appliances of each kind.
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { type ControlClient, connectControlClient } from '../../../src/control/client.ts';
import { type Emulator, startEmulator } from '../../../src/emulator/index.ts';
import { HubProcess } from '../../../test/support/hub-process.ts';
import { logFile, rememberSecrets } from '../../../test/support/logs.ts';
import { type MemoryUsage, memoryProbeEnv, readMemory } from '../memory.ts';
import type { FuzzCredentials, HubFacts } from './facts.ts';

/** The users who pair the attacker's and the victim's appliances. */
export const USERS = { attacker: 'attacker', victim: 'victim' } as const;

/** The ports of a hub. */
export interface HubPorts {
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Its CA's certificate, PEM. */
  readonly ca: string;
}

/** The number of requests that the hub sent to the portal, by the emulator's names of endpoints. */
type PortalRequests = Readonly<Record<string, number>>;

/** A running home, until it is disposed of. */
export interface FuzzedHub extends AsyncDisposable {
  readonly hub: HubProcess;
  readonly emulator: Emulator;
  readonly ports: HubPorts;
  readonly victim: FuzzCredentials;
  readonly own: FuzzCredentials;
  readonly doubter: FuzzCredentials;
  readonly keyed: HubFacts['keyed'];
  readonly declared: FuzzCredentials;
  readonly sign: HubFacts['sign'];
  /** The client of the hub's control socket. */
  readonly control: ControlClient;
  /** Trusts the hub's CA and nothing else. */
  readonly agent: Agent;
  memory(): Promise<MemoryUsage>;
  portalRequests(): PortalRequests;
}

/** In seconds. */
const DAY = 86_400;

export async function startFuzzedHub(): Promise<FuzzedHub> {
  await using started = new AsyncDisposableStack();
  const counts: Record<string, number> = {};
  const received = ({ endpoint }: { readonly endpoint: string }) => {
    counts[endpoint] = (counts[endpoint] ?? 0) + 1;
  };
  const users = Object.values(USERS).map((name) => ({ name, password: `${name}-password` }));
  const emulator = started.use(await startEmulator({ users, intercept: { received } }));
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const declared = { id: 'declared-meter', secret: 'declared-meter-secret-0123456789abcdef' };
  const heap = logFile('heap');
  const hub = await prepare(emulator, declared, publicKey, heap);
  started.use(hub);
  await hub.launch();
  const control = started.use(await connectControlClient([join(hub.directory, 'state/control.sock')]));
  // The old CA is still served, too.
  const ca = (await control.request('rotateAuthority', { keep: DAY })).certificate;
  const agent = new Agent({ connect: { ca } });
  started.defer(() => agent.destroy());
  const add = async (name: string, user: string): Promise<FuzzCredentials> => {
    const { client_id, client_secret } = await hub.addAppliance(name, 'Monitoring');
    await logIn(emulator, await hub.beginPairing(name), user);
    return { id: client_id, secret: client_secret };
  };
  const victim = await add('victim', USERS.victim);
  const own = await add('own', USERS.attacker);
  const doubter = await add('doubter', USERS.attacker);
  await logIn(emulator, await hub.beginPairing('keyed'), USERS.attacker);
  rememberSecrets([declared.secret]);
  const resources = started.move();
  return {
    hub,
    emulator,
    ports: { httpPort: hub.httpPort, httpsPort: hub.httpsPort, ca },
    victim,
    own,
    doubter,
    keyed: { id: 'keyed-meter', publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() },
    declared,
    control,
    agent,
    sign: (header, claims) => signed(privateKey, header, claims),
    memory: () => readMemory(heap),
    portalRequests: () => ({ ...counts }),
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

async function prepare(
  emulator: Emulator,
  declared: FuzzCredentials,
  publicKey: KeyObject,
  heap: string,
): Promise<HubProcess> {
  const toml = [
    '[appliances.declared]',
    `client_id = "${declared.id}"`,
    'secret_file = "declared.secret"',
    '[appliances.keyed]',
    'client_id = "keyed-meter"',
    'jwks_file = "keyed.jwks"',
    'scope = "Monitoring"',
  ];
  const hub = await HubProcess.prepare({
    emulator,
    toml: toml.join('\n'),
    lan: 'mdns = false',
    // In its own session, so that Ctrl-C ends the fuzz and not the hub.
    within: ['setsid'],
    env: memoryProbeEnv(heap),
  });
  writeFileSync(join(hub.directory, 'declared.secret'), declared.secret, { mode: 0o600 });
  const jwks = { keys: [publicKey.export({ format: 'jwk' })] };
  writeFileSync(join(hub.directory, 'keyed.jwks'), JSON.stringify(jwks), { mode: 0o600 });
  return hub;
}

/**
 * Logs in at the portal through a pairing link.
 * @returns the callback address that received the code
 * @throws Error if the appliance is not connected after that
 */
export async function logIn(emulator: Emulator, link: URL, user: string): Promise<string> {
  const { location } = await emulator.login({ state: link.searchParams.get('state') ?? '', user });
  const response = await request(location);
  const page = await response.body.text();
  if (!page.includes('is connected')) throw new Error(`the callback responded ${response.statusCode}: ${page}`);
  return location;
}

function signed(key: KeyObject, header: object, claims: object): string {
  const [head, payload] = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  return `${head}.${payload}.${sign(null, Buffer.from(`${head}.${payload}`), key).toString('base64url')}`;
}

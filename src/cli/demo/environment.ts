import type { Configuration } from '../../configuration/configuration.ts';
import type { Administration } from '../../core/administration.ts';
import type { ConnectionChoice } from '../../core/appliances/appliance.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../emulator/index.ts';
import { startHub } from '../../hub/hub.ts';
import { lanAddress } from '../../hub/hub-endpoints.ts';
import { systemRandom } from '../../system/random.ts';
import { emulatorCloudConfiguration, emulatorPortalConfiguration, temporaryStateDirectory } from '../test-mode.ts';
import { SimulatedAppliance } from './simulated-appliance.ts';

/** A connection of the demo with its appliances, and how the hub gets the authorization code of its pairing. */
export interface DemoConnection {
  readonly name: string;
  readonly appliances: readonly SimulatedAppliance[];
  /** Its portal. */
  readonly emulator: Emulator;
  /** How the hub gets the code, as text for people: before the login, and after it. */
  readonly codeDelivery: { readonly before: string; readonly after: string };
  /** Where the portal redirects the browser after the login; `nowhere`: to an unreachable page. */
  readonly redirect: 'hub' | 'nowhere' | 'none';
}

/** The demo's home: a hub, four appliances, two of which share a connection, and two emulated portals. */
export interface DemoEnvironment {
  readonly administration: Administration;
  /** The path of the hub's control socket, which no command finds by itself. */
  readonly controlSocket: string;
  readonly emulators: readonly [Emulator, Emulator];
  readonly connections: readonly DemoConnection[];
  /** Lifetime of access tokens in seconds. */
  readonly tokenLifetime: number;
}

/** Lifetime of the demo's access tokens in seconds, short so that refreshes can be watched. */
const TOKEN_LIFETIME_SECONDS = 10;

/** Nothing listens on this port: a phone outside the home network cannot reach the hub's address either. */
const UNREACHABLE_ORIGIN = 'http://127.0.0.1:9';

/** A connection of its own for each of two appliances, and one that two others share. */
const CONNECTIONS = [
  {
    name: 'wallbox',
    sharedBy: null,
    scope: 'Monitoring RemoteControl',
    portal: 'home',
    codeDelivery: {
      before: 'the browser brings the code to the hub',
      after: 'the browser has brought the code to the hub',
    },
    redirect: 'hub',
  },
  {
    name: 'heat-pump',
    sharedBy: null,
    scope: 'Monitoring',
    portal: 'away',
    codeDelivery: {
      before: 'the phone is not at home: the hub polls for the code',
      after: 'the phone is not at home: the hub has polled for the code',
    },
    redirect: 'nowhere',
  },
  {
    name: 'solar',
    sharedBy: ['inverter', 'dashboard'],
    scope: 'Monitoring',
    portal: 'cloud',
    codeDelivery: {
      before: 'an ordinary OAuth 2.0 cloud: it shows the code that a person compares there',
      after: 'an ordinary OAuth 2.0 cloud: the hub has polled with its device code',
    },
    redirect: 'none',
  },
] as const;

/**
 * Starts the demo without a configuration file. It stores nothing permanently.
 * @param parts receives what is started, to dispose of it at the end
 * @param isForPhones whether it listens on the machine's address in the home network, if it has one, not on loopback
 */
export async function setUpDemo(
  parts: AsyncDisposableStack,
  clock: Clock,
  log: Log,
  isForPhones: boolean,
): Promise<DemoEnvironment> {
  const host = (isForPhones && lanAddress('auto')) || '127.0.0.1';
  const client = () => ({ id: systemRandom.uuid(), secret: systemRandom.token(24), name: 'Latchkey demo' });
  const clients = { home: client(), away: client(), cloud: client() };
  const portals = parts.use(new AsyncDisposableStack());
  const start = async (options: EmulatorOptions) =>
    portals.use(await startEmulator({ ...options, tokenLifetime: TOKEN_LIFETIME_SECONDS }));
  const emulator = await start({ host, clients: [clients.home, clients.away] });
  // An OAuth 2.0 server without TLS is permitted on loopback only.
  const cloudEmulator = await start({ clients: [clients.cloud] });
  const stateDirectory = await temporaryStateDirectory(parts);
  const portal = (name: 'home' | 'away', redirect: string) =>
    emulatorPortalConfiguration(emulator, {
      name,
      redirect,
      clientId: clients[name].id,
      clientSecret: clients[name].secret,
    });
  const cloud = emulatorCloudConfiguration(cloudEmulator, {
    name: 'cloud',
    clientId: clients.cloud.id,
    clientSecret: clients.cloud.secret,
  });
  const configuration: Configuration = {
    file: 'the demo',
    name: 'Demo hub',
    stateDirectory,
    controlSocket: `${stateDirectory}/control.sock`,
    lan: { httpPort: 0, httpsPort: 0, address: host, listen: [host], mdns: false, certificate: null },
    portals: [portal('home', 'auto'), portal('away', UNREACHABLE_ORIGIN), cloud],
    connections: [],
    appliances: [],
    pairing: { lifetime: 900_000, pollInterval: 5000, onStart: false },
    notify: { command: null, webhook: null, webhookSecret: null, language: 'en' },
    metrics: null,
    ingress: null,
    local: null,
    site: null,
    credentialsDirectory: undefined,
    testMode: true,
  };
  const { administration } = parts.use(await startHub(configuration, log));
  // Before the hub, which would wait for every response that a fault holds back.
  parts.defer(() => portals.disposeAsync());
  const ca = administration.caStatus().certificate;
  const addAppliance = async (name: string, choice: ConnectionChoice, { baseUrl }: Emulator) => {
    const credentials = await administration.addAppliance(name, choice);
    return parts.use(new SimulatedAppliance(credentials, ca, baseUrl, clock));
  };
  const connections: DemoConnection[] = [];
  for (const { name, sharedBy, scope, portal: portalName, ...login } of CONNECTIONS) {
    const appliances: SimulatedAppliance[] = [];
    const ofPortal = portalName === 'cloud' ? cloudEmulator : emulator;
    if (sharedBy === null)
      appliances.push(await addAppliance(name, { connections: [], scope, portal: portalName }, ofPortal));
    else {
      await administration.addConnection(name, scope, portalName);
      for (const user of sharedBy) {
        appliances.push(await addAppliance(user, { connections: [name], scope: null, portal: null }, ofPortal));
      }
    }
    connections.push({ name, appliances, emulator: ofPortal, ...login });
  }
  return {
    administration,
    controlSocket: configuration.controlSocket,
    emulators: [emulator, cloudEmulator],
    connections,
    tokenLifetime: TOKEN_LIFETIME_SECONDS,
  };
}

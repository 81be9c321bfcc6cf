import type { Configuration } from '../../configuration/configuration.ts';
import type { Administration, IssuedCredentials } from '../../core/administration.ts';
import type { Clock } from '../../core/clock.ts';
import type { Log } from '../../core/log.ts';
import { type Emulator, startEmulator } from '../../emulator/index.ts';
import { startHub } from '../../hub/hub.ts';
import { systemRandom } from '../../system/random.ts';
import { emulatorPortalConfiguration, temporaryStateDirectory } from '../test-mode.ts';
import { SimulatedAppliance } from './simulated-appliance.ts';

/** How an appliance of the demo comes to its code. */
export interface DemoAppliance {
  readonly appliance: SimulatedAppliance;
  /** How the code comes to the hub, in words: before the login, and after it. */
  readonly codeDelivery: { readonly before: string; readonly after: string };
  /** Where the portal sends a browser after the login; `nowhere`: to a page that can't be reached. */
  readonly redirect: 'hub' | 'nowhere' | 'none';
}

/** The demo's home: a hub, three appliances and an emulated portal. */
export interface DemoEnvironment {
  readonly administration: Administration;
  readonly emulator: Emulator;
  readonly appliances: readonly DemoAppliance[];
  /** Seconds that access tokens live. */
  readonly tokenLifetime: number;
}

/** Seconds that the demo's access tokens live, so that refreshes can be watched. */
const TOKEN_LIFETIME_SECONDS = 10;

/** Nobody listens there, just as a phone outside the home network finds nobody at the hub's address. */
const UNREACHABLE_ORIGIN = 'http://127.0.0.1:9';

const APPLIANCES = [
  {
    name: 'wallbox',
    scope: 'Monitoring RemoteControl',
    portal: 'home',
    way: { before: 'the redirect brings the code to the hub', after: 'the redirect has brought the code to the hub' },
    redirect: 'hub',
  },
  {
    name: 'heat-pump',
    scope: 'Monitoring',
    portal: 'away',
    way: {
      before: 'the phone is not at home: the hub polls for the code',
      after: 'the phone is not at home: the hub has polled for the code',
    },
    redirect: 'nowhere',
  },
  {
    name: 'inverter',
    scope: null,
    portal: 'strict',
    way: {
      before: 'the portal refuses a redirect: the hub polls for the code',
      after: 'the portal refuses a redirect: the hub has polled for the code',
    },
    redirect: 'none',
  },
] as const;

/**
 * Moves in: nothing is configured, nothing is kept, and all of it listens on loopback only.
 * @param parts what is started is disposed of with these
 */
export async function setUpDemo(parts: AsyncDisposableStack, clock: Clock, log: Log): Promise<DemoEnvironment> {
  const client = (redirectUrl: 'accept' | 'refuse') => ({
    id: systemRandom.uuid(),
    secret: systemRandom.token(24),
    name: 'Latchkey demo',
    redirectUrl,
  });
  const clients = { home: client('accept'), away: client('accept'), strict: client('refuse') };
  const emulator = parts.use(
    await startEmulator({ clients: Object.values(clients), tokenLifetime: TOKEN_LIFETIME_SECONDS }),
  );
  const stateDirectory = await temporaryStateDirectory(parts);
  const portal = (name: keyof typeof clients, redirect: string) =>
    emulatorPortalConfiguration(emulator, {
      name,
      redirect,
      clientId: clients[name].id,
      clientSecret: clients[name].secret,
    });
  const configuration: Configuration = {
    file: 'the demo',
    name: 'Demo hub',
    stateDirectory,
    controlSocket: `${stateDirectory}/control.sock`,
    lan: { httpPort: 0, httpsPort: 0, address: '127.0.0.1', listen: ['127.0.0.1'], mdns: false, certificate: null },
    portals: [portal('home', 'auto'), portal('away', UNREACHABLE_ORIGIN), portal('strict', 'auto')],
    appliances: [],
    pairing: { lifetime: 900_000, pollInterval: 5000, onStart: false },
    notify: { command: null, webhook: null },
    metrics: null,
    credentialsDirectory: undefined,
  };
  const { administration } = parts.use(await startHub(configuration, log));
  const ca = administration.caStatus().certificate;
  const members: DemoAppliance[] = [];
  for (const { name, scope, portal: portalName, way, redirect } of APPLIANCES) {
    const credentials: IssuedCredentials = await administration.addAppliance(name, scope, portalName);
    const appliance = parts.use(new SimulatedAppliance(credentials, ca, emulator.baseUrl, clock));
    members.push({ appliance, codeDelivery: way, redirect });
  }
  return { administration, emulator, appliances: members, tokenLifetime: TOKEN_LIFETIME_SECONDS };
}

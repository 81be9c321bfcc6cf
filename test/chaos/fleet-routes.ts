import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import type { Timers } from '../../src/core/clock.ts';
import type { Portal } from '../../src/core/portals/portal.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Emulator, FaultOptions } from '../../src/emulator/index.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import type { OAuth2Settings } from '../../src/portal/oauth2/settings.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { connectOAuth2Portal } from '../portal/oauth2/oauth2-portal-harness.ts';
import type { FakeTime } from '../support/fake-time.ts';
import { FIREWALL } from './portal-faults.ts';
import type { PortalKind } from './portal-kinds.ts';

/**
 * What is wrong with the connection to the portal. Dropped packets are tested with the real daemon
 * (`network-partition.ts`), because connect timeouts take real time, and a day has ten thousand.
 */
export const OUTAGES = ['refused', 'name unknown', 'another certificate', '503', '503 in 5 min', 'HTML 403'] as const;
export type Outage = (typeof OUTAGES)[number];

/** What the portal responds during an outage in which it can be reached. */
export const OUTAGE_FAULTS: Partial<Record<Outage, FaultOptions>> = {
  '503': { kind: 'status', endpoint: 'token', status: 503, times: null },
  '503 in 5 min': { kind: 'status', endpoint: 'token', status: 503, headers: { 'retry-after': '300' }, times: null },
  'HTML 403': { ...FIREWALL, endpoint: '*' },
};

/** The kind of portal that limits the rate of requests, as Home Connect does, and the interval of two, in ms. */
export const PACED = { kind: 'configured', interval: 6000 } as const;

/** A port without a server. No test can get this port by chance. */
const REFUSING = 'http://127.0.0.1:1';
/** A label of a host name has at most 63 characters, so this name is unknown without a DNS query. */
const UNKNOWN = `https://${'a'.repeat(64)}.test`;
const NO_ENDPOINTS = { authorization: null, token: null, deviceAuthorization: null, revocation: null };

/** A client of each kind of portal. */
export type Clients = Readonly<Record<PortalKind, Portal & AsyncDisposable>>;

/** The ways of the fleet to the portal. */
export interface Routes {
  /** Connects clients for each outage, as a start of the hubs does. */
  readonly connect: () => ReadonlyMap<Outage | null, Clients>;
  /** How often a request has waited for its turn at the paced portal. */
  readonly waits: number;
  /** A server with another certificate. */
  readonly foreign: Server;
}

/**
 * The routes to the portal, with a real server or a real error at the end of each.
 * @param timers whose sleep lets virtual time pass
 */
export async function createRoutes(emulator: Emulator, time: FakeTime, timers: Timers): Promise<Routes> {
  const clientSecret = new Secret(emulator.clientSecret);
  let metadata: string | null = null;
  let waits = 0;
  const sleep: Timers['sleep'] = (delay, signal) => {
    waits += 1;
    return timers.sleep(delay, signal);
  };
  const counting = { ...timers, sleep };
  const clients = (frontendUrl: string): Clients => {
    const oauth2 = (settings: Pick<OAuth2Settings, 'issuer' | 'endpoints' | 'minRequestInterval'>) =>
      connectOAuth2Portal(emulator, {
        ...settings,
        clientId: emulator.clientId,
        clock: time,
        timers: counting,
        // The hubs know the endpoints from before the outage.
        metadataCache: {
          load: async () => metadata?.replaceAll(emulator.frontendUrl, frontendUrl) ?? null,
          save: async (document) => {
            metadata = document;
          },
        },
      });
    return {
      helper: new HelperPortal({
        baseUrl: emulator.baseUrl,
        frontendUrl,
        clientId: emulator.clientId,
        clientSecret,
        credentialLocation: { portal: 'home' },
        ca: [],
      }),
      discovered: oauth2({ issuer: frontendUrl, endpoints: NO_ENDPOINTS, minRequestInterval: 0 }),
      configured: oauth2({
        issuer: null,
        minRequestInterval: PACED.interval,
        endpoints: {
          ...NO_ENDPOINTS,
          token: `${frontendUrl}/oauth2/token`,
          deviceAuthorization: `${frontendUrl}/oauth2/device_authorization`,
        },
      }),
    };
  };
  const leaf = await issueLeaf(await createAuthority(), { names: [], addresses: ['127.0.0.1'], now: Date.now() });
  const foreign = createSecureServer({ cert: leaf.certificate, key: leaf.key });
  await once(foreign.listen(0, '127.0.0.1'), 'listening');
  const { port: another } = foreign.address() as AddressInfo;
  return {
    get waits() {
      return waits;
    },
    foreign,
    connect: () =>
      new Map<Outage | null, Clients>([
        [null, clients(emulator.frontendUrl)],
        ['refused', clients(REFUSING)],
        ['name unknown', clients(UNKNOWN)],
        ['another certificate', clients(`https://127.0.0.1:${another}`)],
      ]),
  };
}

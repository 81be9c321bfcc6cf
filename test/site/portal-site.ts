import { request } from 'undici';
import type { Broker } from '../../src/broker/open-broker.ts';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { BrokerStore, ConnectedPortal } from '../../src/broker/ports.ts';
import type { Connection } from '../../src/core/connections/connection.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import { parseStatefulResponse } from '../../src/core/pairings/authorization-response.ts';
import type { PairingStep } from '../../src/core/pairings/pairing.ts';
import type { LoginLink } from '../../src/core/portals/login-link.ts';
import type { Portal } from '../../src/core/portals/portal.ts';
import type { ConnectionEvent } from '../../src/core/reports/history.ts';
import { Secret } from '../../src/core/secret.ts';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import type { DatabaseAddress } from '../../src/store/postgres/database/connections.ts';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { connectOAuth2Portal } from '../portal/oauth2/oauth2-portal-harness.ts';
import { FaultyPortal } from '../support/faulty-portal.ts';
import { rememberSecrets } from '../support/logs.ts';
import { PostgresProxy } from '../support/postgres/proxy.ts';
import type { TestDatabase } from '../support/postgres/server.ts';
import { expectSoon, type SiteBroker, startSiteBroker } from './site-brokers.ts';
import { siteAddress, siteServer } from './site-harness.ts';

/** How the hubs of a test site connect to their portal. */
export interface SiteOptions {
  readonly emulator?: EmulatorOptions;
  /** How a person logs in at an OAuth 2.0 portal; left out: the portal is a helper portal. */
  readonly login?: 'device' | 'redirect';
}

/** Where an OAuth 2.0 portal redirects the browser. */
const CALLBACK = 'http://192.168.1.7:8480/callback';

/** An OAuth 2.0 portal whose login is confirmed without a person. */
export const AUTOMATIC_REDIRECT: SiteOptions = {
  login: 'redirect',
  emulator: {
    clients: [{ id: '6a8f8d0e-3a34-4d6e-9d43-0b5d3c1f1a01', secret: 'the-secret', redirectUris: [CALLBACK] }],
    autoLogin: true,
  },
};

/** A portal and the database of a site, without hubs. Disposal ends the hubs that run. */
export class PortalSite implements AsyncDisposable {
  readonly emulator: Emulator;
  readonly portal: FaultyPortal;
  readonly database: TestDatabase;
  readonly #options: SiteOptions;
  readonly #hubs = new Set<PortalHub>();

  private constructor(emulator: Emulator, portal: FaultyPortal, database: TestDatabase, options: SiteOptions) {
    this.emulator = emulator;
    this.portal = portal;
    this.database = database;
    this.#options = options;
  }

  static async start(options: SiteOptions = {}): Promise<PortalSite> {
    const emulator = await startEmulator({ port: 0, ...options.emulator });
    const portal = await FaultyPortal.start(emulator);
    return new PortalSite(emulator, portal, await (await siteServer()).createDatabase(), options);
  }

  /**
   * Starts a hub.
   * @param number of the hub, which is the last part of its id and of its address
   * @param wrap changes the store that its broker uses
   * @param through a proxy to the database
   */
  async startHub(
    number: number,
    wrap?: (store: PostgresStore) => BrokerStore,
    through?: PostgresProxy,
  ): Promise<PortalHub> {
    const address = siteAddress(this.database, through);
    const portal = connectPortal(this, number, this.#options);
    const hub = await PortalHub.start(address, `latchkey-0000000${number}`, portal, wrap);
    this.#hubs.add(hub);
    return hub;
  }

  /** The portal processes the next token request, and its answer comes when the returned function is called. */
  holdAnswer(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.portal.fail('token', { kind: 'wait', until: promise });
    return resolve;
  }

  /** The codes that were sent to the token endpoint. */
  get codesSent(): string[] {
    const codes = this.portal.requests('token').map(({ form }) => form.get('code'));
    return codes.filter((code) => code !== null);
  }

  /** Lets the ownership of all pairings end, as if their owners had been silent for longer. */
  async endOwnership(): Promise<void> {
    await (await siteServer()).sql(this.database, 'UPDATE latchkey.pairings SET owned_until = now()');
  }

  /** For how many more seconds the pairings are owned; negative if it has ended. */
  async ownedTime(): Promise<number> {
    const query = 'SELECT extract(epoch FROM min(owned_until) - now()) FROM latchkey.pairings';
    return Number(await (await siteServer()).sql(this.database, query));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of this.#hubs) await hub[Symbol.asyncDispose]();
    rememberSecrets([...this.emulator.secretsIssued(), this.emulator.clientSecret]);
    await this.portal[Symbol.asyncDispose]();
    await this.emulator.close();
  }
}

/** A hub of such a site. */
export class PortalHub implements AsyncDisposable {
  readonly #hub: SiteBroker;
  #hasEnded = false;

  private constructor(hub: SiteBroker) {
    this.#hub = hub;
  }

  /**
   * @param portal what the hub connects to
   * @param wrap changes the store that its broker uses
   */
  static async start(
    address: DatabaseAddress,
    hubId: string,
    portal: ConnectedPortal,
    wrap?: (store: PostgresStore) => BrokerStore,
  ): Promise<PortalHub> {
    const portals = {
      names: ['home'],
      get: (name: string) => (name === 'home' ? portal : undefined),
      nameOf: () => undefined,
    };
    const pairingTimes = { lifetime: 900_000, pollInterval: 300 };
    return new PortalHub(await startSiteBroker(address, hubId, wrap, { portals, pairingTimes }));
  }

  get broker(): Broker {
    return this.#hub.broker;
  }

  get service(): LanService {
    return this.#hub.service;
  }

  get store(): PostgresStore {
    return this.#hub.store;
  }

  /** The events that it has emitted. */
  get emitted(): readonly ConnectionEvent[] {
    return this.#hub.emitted;
  }

  /** The names of the events that it has logged. */
  get logged(): readonly string[] {
    return this.#hub.logged.map(({ event }) => event);
  }

  /** Adds an appliance with a connection of its own. @returns the connection */
  async addAppliance(name: string): Promise<Connection> {
    const { appliance, secret } = await this.broker.appliances.add(name, {
      connections: [],
      scope: 'Monitoring',
      portal: null,
    });
    rememberSecrets([secret.reveal()]);
    return this.broker.connections.ofAppliance(appliance);
  }

  /** @throws Error if this hub does not know it */
  connectionById(id: string): Connection {
    const connection = this.broker.connections.byId(id);
    if (connection === undefined) throw new Error(`the hub does not know the connection ${id}`);
    return connection;
  }

  /** A pairing as this hub knows it; undefined if it does not. */
  pairing(id: string): PairingRun | undefined {
    return this.broker.pairings.find((run) => run.pairing.id === id);
  }

  /** The step of a pairing, or how it ended. */
  stepOf(id: string): string | undefined {
    const step = this.pairing(id)?.pairing.step;
    return step && describeStep(step);
  }

  /** The open pairings of a connection, by id. */
  openPairings(connection: string): readonly string[] {
    const open = this.broker.pairings.filter(({ isOpen, pairing }) => isOpen && pairing.connection === connection);
    return open.map(({ pairing }) => pairing.id).sort();
  }

  /** Ends without a further write, as by a power cut. */
  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.store[Symbol.asyncDispose]();
    this.broker.scheduler[Symbol.dispose]();
    void this.broker[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.#hub[Symbol.asyncDispose]();
  }
}

/**
 * A site of two hubs with an appliance. The first hub is behind a proxy to the database.
 * @param wrap changes the store that its broker uses
 */
export async function startTwoHubs(options?: SiteOptions, wrap?: (store: PostgresStore) => BrokerStore) {
  await using starting = new AsyncDisposableStack();
  const site = starting.use(await PortalSite.start(options));
  const proxy = starting.use(await PostgresProxy.start(await siteServer()));
  const first = await site.startHub(1, wrap, proxy);
  const connection = await first.addAppliance('wallbox');
  const second = await site.startHub(2);
  const resources = starting.move();
  return {
    site,
    proxy,
    first,
    second,
    connection,
    /** Begins a pairing on the first of these hubs; resolves when all of them know its link. @returns its id */
    async begin(hubs: readonly [PortalHub, ...PortalHub[]] = [first, second]): Promise<string> {
      const { pairing } = await hubs[0].broker.pairings.begin(hubs[0].connectionById(connection.id));
      await expectSoon(() => hubs.every((hub) => hub.stepOf(pairing.id) === 'waiting'), true);
      return pairing.id;
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** `paired`, the failure reason, or the current step. */
function describeStep(step: PairingStep): string {
  if (step.kind !== 'ended') return step.kind;
  return step.result.kind === 'failed' ? step.result.reason : 'paired';
}

/** The newest link of a pairing. @throws Error if nobody can log in */
function linkOf(run: PairingRun | undefined): LoginLink {
  const step = run?.pairing.step;
  if (step?.kind !== 'waiting') throw new Error(`nobody can log in: the pairing is ${step?.kind}`);
  return step.link;
}

/** A person logs in through the link of a pairing. @returns where the portal redirects the browser */
export async function logIn({ emulator }: PortalSite, run: PairingRun | undefined): Promise<URL> {
  const link = linkOf(run);
  if (link.kind === 'redirect') return new URL(String((await request(link.authorizeUrl)).headers['location']));
  const state = new URL(link.authorizeUrl).searchParams.get('state') ?? '';
  return new URL((await emulator.login({ state, user: 'demo' })).location);
}

/** A browser follows the portal's redirect to a hub. */
export async function followRedirect(
  { broker: { pairings } }: PortalHub,
  location: URL,
  browserToken: string | null = null,
) {
  const nonce = location.pathname.split('/').at(-1) ?? '';
  const code = new Secret(location.searchParams.get('code') ?? '');
  const received = parseStatefulResponse(location.searchParams) ?? { nonce, response: { kind: 'code', code } };
  return (await pairings.receive(received, { address: '192.168.1.23', browserToken }))?.pairing ?? null;
}

function connectPortal(
  { emulator, portal: faulty }: PortalSite,
  number: number,
  { login }: SiteOptions,
): ConnectedPortal {
  const portal: Portal =
    login === undefined ? helperPortal(emulator, faulty, number) : oauth2Portal(emulator, faulty, login);
  return {
    portal,
    credentialLocation: { portal: 'home' },
    retryLostAnswer: 'early',
    identity: { name: 'home', origin: faulty.frontendUrl, clientId: emulator.clientId, otherOrigins: [] },
    loginLifetime: null,
    idleLifetime: null,
    refreshEndsAccessToken: false,
  };
}

function helperPortal(emulator: Emulator, { baseUrl, frontendUrl }: FaultyPortal, number: number): Portal {
  return new HelperPortal({
    credentialLocation: { portal: 'home' },
    ca: [],
    baseUrl,
    frontendUrl,
    clientId: emulator.clientId,
    clientSecret: new Secret(emulator.clientSecret),
    redirectUrl: (nonce) => `http://192.168.1.${number}:8480/callback/${nonce}`,
  });
}

function oauth2Portal(emulator: Emulator, { frontendUrl }: FaultyPortal, login: 'device' | 'redirect'): Portal {
  return connectOAuth2Portal(emulator, {
    issuer: null,
    endpoints: {
      authorization: `${emulator.frontendUrl}/oauth2/authorize`,
      token: `${frontendUrl}/oauth2/token`,
      deviceAuthorization: `${frontendUrl}/oauth2/device_authorization`,
      revocation: `${frontendUrl}/oauth2/revoke`,
    },
    clientId: emulator.clientId,
    clientAuth: 'post',
    clientSecret: new Secret(emulator.clientSecret),
    login,
    redirectUri: CALLBACK,
  });
}

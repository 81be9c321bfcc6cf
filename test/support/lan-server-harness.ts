import type { Agent } from 'undici';
import type { Administration } from '../../src/core/administration.ts';
import type { Appliance, ClientCredentials } from '../../src/core/appliances/appliance.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import type { LogFields } from '../../src/core/log.ts';
import { Secret } from '../../src/core/secret.ts';
import type { SetupAccess } from '../../src/core/setup-access.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import { AssertionReplayCache } from '../../src/lan/oauth/assertion-replay-cache.ts';
import { type LanServer, type LanServerOptions, startLanServer } from '../../src/lan/server.ts';
import { openPages } from '../../src/page/pages.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import type { Leaf } from '../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { createAgent } from './agent.ts';
import { logTo } from './log-to.ts';

/** The name of this hub, besides `localhost`. */
export const HUB_NAME = 'latchkey-test.local';

/** Sockets that outlive the harness, and fixed ports instead of any free ones. */
interface LanPorts {
  readonly sockets?: ListeningSocketPool;
  readonly httpPort?: number;
  readonly httpsPort?: number;
}

/** Only the LAN server of a hub, over real sockets: every client that authenticates gets a token. */
export class LanServerHarness implements AsyncDisposable {
  readonly server: LanServer;
  readonly ca: string;
  /** Sends requests as a device that trusts its CA. */
  readonly agent: Agent;
  readonly #issue: () => Promise<Leaf>;
  readonly #home: StubHome;
  readonly #resources: AsyncDisposableStack;

  private constructor(
    server: LanServer,
    ca: string,
    agent: Agent,
    issue: () => Promise<Leaf>,
    home: StubHome,
    resources: AsyncDisposableStack,
  ) {
    this.server = server;
    this.ca = ca;
    this.agent = agent;
    this.#issue = issue;
    this.#home = home;
    this.#resources = resources;
  }

  /**
   * @param listen addresses of this machine
   * @param other sockets that outlive the harness, fixed ports, timers other than the system's, and assertions that
   * were seen before
   */
  static async start(
    listen: readonly string[] = ['127.0.0.1'],
    other: Partial<Pick<LanServerOptions, 'timers' | 'usedAssertions'>> & LanPorts = {},
  ): Promise<LanServerHarness> {
    const authority = await createAuthority();
    const names = [HUB_NAME, 'localhost'];
    const issue = () => issueLeaf(authority, { names, addresses: ['127.0.0.1', '127.0.0.2'], now: Date.now() });
    const leaf = await issue();
    const home = new StubHome();
    await using resources = new AsyncDisposableStack();
    const agent = resources.adopt(createAgent({ connect: { ca: authority.certificate } }), (it) => it.destroy());
    const { httpPort = 0, httpsPort = 0, ...others } = other;
    const sockets = other.sockets ?? new ListeningSocketPool();
    const opened = await sockets.claim({ addresses: listen, ports: { http: httpPort, https: httpsPort } });
    resources.defer(() => sockets.release([...opened.http.sockets, ...opened.https.sockets]));
    const server = await startLanServer({
      service: home.service,
      pages: openPages({
        ready: Promise.resolve(),
        ...home.people,
        service: home.service,
        hubName: 'Test hub',
        log: home.log,
        clock: home.clock,
        timers: systemTimers,
        random: systemRandom,
      }),
      hostNames: () => names,
      ports: opened,
      ca: () => ({ certificate: home.padding + authority.certificate }),
      leaf,
      log: home.log,
      clock: home.clock,
      timers: systemTimers,
      usedAssertions: new AssertionReplayCache(),
      ...others,
    });
    resources.use(server);
    // Clients of a harness that stops are refused.
    if (other.sockets === undefined) resources.use(sockets);
    return new LanServerHarness(server, authority.certificate, agent, issue, home, resources.move());
  }

  /** The stub behind the LAN server, which tests may change. */
  get home(): StubHome {
    return this.#home;
  }

  async renewLeaf(): Promise<Leaf> {
    const leaf = await this.#issue();
    this.server.renewLeaf(leaf);
    return leaf;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}

/** The state behind a hub's LAN server, without a portal. */
class StubHome {
  readonly #appliances = new Map<string, Appliance>();
  /** The true time, in ms; null while the clock is not confirmed. */
  now: number | null = Date.UTC(2027, 4, 6, 7, 8, 9);
  started = Date.UTC(2027, 4, 6, 6);
  /** The reading of a second clock, in ms since 1970; null if there is none. */
  other: number | null = null;
  /** Called when the time is requested. */
  whenAsked: () => void = () => undefined;
  /** Whether other hubs may have changed something, and what happens when the hub looks for that. */
  isOnSite = false;
  whenLooking: () => void = () => undefined;
  /** The client_ids of appliances that no earlier run of the hub knew. */
  readonly newcomers = new Set<string>();
  /** On the boot clock, in ms. */
  uptime = 1_000_000;
  /** The text of `/ca.pem` before the certificate. */
  padding = '';
  readonly events: { readonly level: string; readonly event: string; readonly fields: LogFields }[] = [];

  add(clientId: string, credentials: ClientCredentials): Appliance {
    const appliance: Appliance = {
      id: `id-of-${clientId}`,
      clientId,
      name: clientId.slice(0, 20),
      title: clientId.slice(0, 20),
      connection: `id-of-${clientId}`,
      credentials,
      origin: 'added',
      waiting: null,
      softwareId: null,
    };
    this.#appliances.set(clientId, appliance);
    return appliance;
  }

  readonly log = logTo((event, fields, level) => this.events.push({ level, event, fields }));

  readonly clock: Clock = { now: () => ({ boot: 'one', uptime: this.uptime, wall: 0 }) };

  /** Only the members that these tests use: nobody can sign in. */
  readonly people = {
    administration: {} as Administration,
    access: { findSession: () => null } as Partial<SetupAccess> as SetupAccess,
  };

  /** Only the members that these tests use. */
  readonly service = {
    findClient: (clientId) => this.#appliances.get(clientId),
    lookForNews: async () => {
      this.whenLooking();
      return this.isOnSite;
    },
    timeReadings: () =>
      [this.now, this.other]
        .filter((now) => now !== null)
        .map((now) => ({ now, startedAt: this.started + now - (this.now ?? now) })),
    confirmTime: async () => this.whenAsked(),
    existedBeforeStart: ({ clientId }) => !this.newcomers.has(clientId),
    recordAuthentication: () => undefined,
    recordRefusal: () => undefined,
    issueToken: async () => ({ kind: 'token', accessToken: new Secret('a-token'), expiresIn: 600, scope: null }),
    revoke: async () => 'revoked',
  } satisfies Partial<LanService> as Partial<LanService> as LanService;
}

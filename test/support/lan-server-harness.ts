import { Agent } from 'undici';
import type { Administration } from '../../src/core/administration.ts';
import type { Appliance, ClientCredentials } from '../../src/core/appliances/appliance.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { LanService } from '../../src/core/lan-service.ts';
import type { LogFields } from '../../src/core/log.ts';
import { Secret } from '../../src/core/secret.ts';
import type { SetupAccess } from '../../src/core/setup-access.ts';
import { ListeningSocketPool } from '../../src/lan/listening-socket-pool.ts';
import { type LanServer, type LanServerOptions, startLanServer } from '../../src/lan/server.ts';
import { openPages } from '../../src/page/pages.ts';
import { systemTimers } from '../../src/system/clock.ts';
import { systemRandom } from '../../src/system/random.ts';
import type { Leaf } from '../../src/system/x509/certificates.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { logTo } from './log-to.ts';

/** The name of this hub, beside `localhost`. */
export const HUB_NAME = 'latchkey-test.local';

/** Sockets that outlive it, and ports other than any that is free. */
interface LanPorts {
  readonly sockets?: ListeningSocketPool;
  readonly httpPort?: number;
  readonly httpsPort?: number;
}

/** The home network's side of a hub alone, over real sockets: whoever authenticates gets a token. */
export class LanServerHarness implements AsyncDisposable {
  readonly server: LanServer;
  readonly ca: string;
  /** Asks it as a device that trusts its CA. */
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
   * @param other sockets that outlive it; ports other than any that is free; timers other than the system's; assertions that
   *   were seen before
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
    const agent = resources.adopt(new Agent({ connect: { ca: authority.certificate } }), (its) => its.destroy());
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
      ...others,
    });
    resources.use(server);
    // Who comes to one that ends is refused.
    if (other.sockets === undefined) resources.use(sockets);
    return new LanServerHarness(server, authority.certificate, agent, issue, home, resources.move());
  }

  /** What stands behind the network's side, to be changed as a test likes. */
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

/** A home without a portal. */
class StubHome {
  readonly #appliances = new Map<string, Appliance>();
  /** By the true time, in ms; null while the clock is not confirmed. */
  now: number | null = Date.UTC(2027, 4, 6, 7, 8, 9);
  started = Date.UTC(2027, 4, 6, 6);
  /** What a second clock has, in ms since 1970; null where there is none. */
  other: number | null = null;
  /** What becomes of asking for the time. */
  whenAsked: () => void = () => undefined;
  /** The client_ids of appliances that no earlier run of the hub knew. */
  readonly newcomers = new Set<string>();
  /** On the boot clock, in ms. */
  uptime = 1_000_000;
  /** What `/ca.pem` has in front of the certificate. */
  padding = '';
  readonly events: { readonly level: string; readonly event: string; readonly fields: LogFields }[] = [];

  add(clientId: string, credentials: ClientCredentials): Appliance {
    const appliance: Appliance = {
      id: `id-of-${clientId}`,
      clientId,
      name: clientId.slice(0, 20),
      scope: null,
      portal: 'home',
      credentials,
      origin: 'added',
      waitingSince: null,
      softwareId: null,
    };
    this.#appliances.set(clientId, appliance);
    return appliance;
  }

  readonly log = logTo((event, fields, level) => this.events.push({ level, event, fields }));

  readonly clock: Clock = { now: () => ({ boot: 'one', uptime: this.uptime, wall: 0 }) };

  /** No more of it than is asked for here: nobody can sign in. */
  readonly people = {
    administration: {} as Administration,
    access: { findSession: () => null } as Partial<SetupAccess> as SetupAccess,
  };

  /** No more of it than is asked for here. */
  readonly service = {
    findClient: (clientId) => this.#appliances.get(clientId),
    timeReadings: () =>
      [this.now, this.other]
        .filter((now) => now !== null)
        .map((now) => ({ now, startedAt: this.started + now - (this.now ?? now) })),
    confirmTime: async () => this.whenAsked(),
    existedBeforeStart: ({ clientId }) => !this.newcomers.has(clientId),
    recordAuthentication: () => undefined,
    issueToken: async () => ({ kind: 'token', accessToken: new Secret('a-token'), expiresIn: 600, scope: null }),
  } satisfies Partial<LanService> as Partial<LanService> as LanService;
}

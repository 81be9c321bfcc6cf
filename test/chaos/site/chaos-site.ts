import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { STORE_KEY_BYTES } from '../../../src/store/keys/sealing.ts';
import { PortalOnHost } from '../../netns/portal-on-host.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { createLan, type Lan, type Process } from '../../support/netns.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { FIREWALL } from '../portal-faults.ts';
import { Appliances } from './appliances.ts';
import { ReplicatedDatabase } from './database.ts';
import { FaultLog } from './fault-log.ts';
import type { AskedHub, LoadAppliance } from './load-messages.ts';
import { PortalLog } from './portal-log.ts';
import { type SiteConfiguration, SiteHub } from './site-hub.ts';

/** The hubs that belong to the site from the beginning, and the one that is added and removed. */
const HUBS = ['hub-a', 'hub-b', 'hub-c'] as const;
const GUEST_HUB = 'hub-d';
const HOSTS = [...HUBS, GUEST_HUB, 'database-1', 'database-2', 'portal', 'appliances'] as const;
/** The connection that is paired and unpaired again and again. */
const GUEST = 'guest';
/** The portal processes the next refresh, and responds later. */
const SLOW_REFRESH = { kind: 'delay', endpoint: 'token', grant_type: 'refresh_token', seconds: 0.5, commit: true };

/** The portals, all of one emulator. `paced` allows one request in a second, `guest` is that of the guest connection. */
type PortalName = 'home' | 'paced' | 'guest';

/** A client at the portal. */
interface PortalClient {
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** How many connections are paired at once. */
const PAIRINGS_AT_ONCE = 4;

/**
 * A site with its database, portal and appliances, each on its own host of a test's network. The portal revokes a grant
 * when one of its refresh tokens is used again. Each connection has a user of the same name at the portal, and an
 * appliance of the same name.
 */
export class ChaosSite implements AsyncDisposable {
  readonly hubs: readonly SiteHub[];
  readonly database: ReplicatedDatabase;
  readonly appliances: Appliances;
  readonly portalLog: PortalLog;
  readonly faults: FaultLog;
  /** The refresh tokens of other programs that were to be imported. */
  readonly imported = new Set<string>();
  readonly #lan: Lan<(typeof HOSTS)[number]>;
  readonly #configuration: SiteConfiguration;
  readonly #passwords: ReadonlyMap<string, string>;
  readonly #clientOf: (portal: PortalName) => PortalClient;
  readonly #resources: AsyncDisposableStack;
  #guest: SiteHub | null = null;

  private constructor(parts: {
    readonly lan: Lan<(typeof HOSTS)[number]>;
    readonly hubs: readonly SiteHub[];
    readonly database: ReplicatedDatabase;
    readonly appliances: Appliances;
    readonly faults: FaultLog;
    readonly configuration: SiteConfiguration;
    readonly passwords: ReadonlyMap<string, string>;
    readonly clientOf: (portal: PortalName) => PortalClient;
    readonly resources: AsyncDisposableStack;
  }) {
    this.hubs = parts.hubs;
    this.database = parts.database;
    this.appliances = parts.appliances;
    this.faults = parts.faults;
    this.portalLog = new PortalLog(parts.appliances);
    this.#lan = parts.lan;
    this.#configuration = parts.configuration;
    this.#passwords = parts.passwords;
    this.#clientOf = parts.clientOf;
    this.#resources = parts.resources;
  }

  /**
   * Starts everything, one hub after another.
   * @param options `connections`: how many; `paced`: how many more at a portal that allows one request in a second;
   * `tokenLifetime`: in seconds
   */
  static async start(options: {
    readonly connections: number;
    readonly paced?: number;
    readonly tokenLifetime: number;
  }): Promise<ChaosSite> {
    await using resources = new AsyncDisposableStack();
    const folder = resources.use(stateFolder());
    const lan = resources.use(await createLan(HOSTS));
    const { hosts } = lan;
    const names = Array.from({ length: options.connections }, (_, index) => `connection-${index + 1}`);
    const paced = Array.from({ length: options.paced ?? 0 }, (_, index) => `paced-${index + 1}`);
    const passwords = new Map([...names, ...paced, GUEST].map((name) => [name, randomUUID()]));
    const portalSecret = randomUUID();
    const clientIds = { home: randomUUID(), paced: randomUUID(), guest: randomUUID() };
    const caFile = join(folder.path, 'portal.pem');
    const portal = resources.use(
      await PortalOnHost.startNamed(hosts.portal, hosts.portal.address, {
        port: 8001,
        frontendPort: 8002,
        caFile,
        showSecrets: true,
        redirectRule: 'any',
        tokenLifetime: options.tokenLifetime,
        onReuse: 'revoke-family',
        contentEncoding: 'br',
        clients: Object.values(clientIds).map((id) => ({ id, secret: portalSecret })),
        users: [...passwords].map(([name, password]) => ({ name, password })),
      }),
    );
    const databaseCaFile = join(folder.path, 'database.pem');
    const database = resources.use(
      await ReplicatedDatabase.start(
        { primary: hosts['database-1'], standby: hosts['database-2'] },
        { clients: ([...HUBS, GUEST_HUB] as const).map((name) => hosts[name]), caFile: databaseCaFile },
      ),
    );
    const appliances = await Appliances.start(hosts.appliances, { ...portal, ca: readFileSync(caFile, 'utf8') });
    const configuration = {
      databaseUrl: database.url,
      storeKey: randomBytes(STORE_KEY_BYTES).toString('base64url'),
      portals: Object.entries(clientIds).map(([name, clientId]) =>
        [
          `[portals.${name}]`,
          'type = "oauth2"',
          `issuer = "${portal.frontendUrl}"`,
          `client_id = "${clientId}"`,
          'client_secret_file = "portal.secret"',
          `ca_file = "${caFile}"`,
          'login = "redirect"',
          ...(name === 'paced' ? ['min_request_interval = "1s"'] : []),
        ].join('\n'),
      ),
      portalSecret,
    };
    rememberSecrets([configuration.storeKey, portalSecret]);
    const faults = new FaultLog();
    const hubs: SiteHub[] = [];
    for (const name of HUBS) {
      const hub = resources.use(await SiteHub.prepare(name, hosts[name], configuration, faults));
      await hub.launch();
      hubs.push(hub);
    }
    const { frontendUrl } = portal;
    const clientOf = (name: PortalName) => ({ frontendUrl, clientId: clientIds[name], clientSecret: portalSecret });
    const parts = { lan, hubs, database, appliances, faults, configuration, passwords, clientOf };
    return new ChaosSite({ ...parts, resources: resources.move() });
  }

  get connections(): readonly string[] {
    return [...this.#passwords.keys()].filter((name) => name !== GUEST);
  }

  /** The address of a host that has no hub. */
  addressOf(host: 'portal' | 'appliances'): string {
    return this.#lan.hosts[host].address;
  }

  /** Starts a program on the host of the appliances. */
  spawnAppliance(command: string, args: readonly string[]): Process {
    return this.#lan.hosts.appliances.spawn(command, args);
  }

  /** All hubs of the site at this time. */
  get members(): readonly SiteHub[] {
    return this.#guest === null ? this.hubs : [...this.hubs, this.#guest];
  }

  /** A hub that suffers no fault; undefined if there is none. */
  get healthyHub(): SiteHub | undefined {
    return this.hubs.find(({ name, isUp }) => isUp && !this.faults.isFaulty(name));
  }

  /**
   * Adds an appliance for each connection, pairs the connections, and starts the load.
   * @param every see {@link Appliances.load}
   */
  async begin(every: number): Promise<void> {
    const fleet: LoadAppliance[] = [];
    const queue = [...this.connections];
    const pairAll = async (index: number) => {
      const hub = this.hubs[index % this.hubs.length];
      for (let name = queue.shift(); name !== undefined && hub !== undefined; name = queue.shift()) {
        const { client_id, client_secret } = await hub.process.addAppliance(name, null, portalOf(name));
        await this.pair(name, hub);
        fleet.push({ name, clientId: client_id, clientSecret: client_secret });
      }
    };
    await Promise.all(Array.from({ length: PAIRINGS_AT_ONCE }, (_, index) => pairAll(index)));
    const [first] = this.hubs;
    await (first as SiteHub).process.addConnection(GUEST, null, 'guest');
    const { certificate } = await (first as SiteHub).process.authority();
    await this.appliances.load(fleet, this.#asked, certificate, every);
  }

  /** Pairs a connection through a hub, even if it is already paired: its user logs in as in a browser. */
  async pair(name: string, { process }: SiteHub): Promise<void> {
    const link = await process.beginPairing(name);
    const page = await this.appliances.logIn(link.href, name, this.#passwords.get(name) ?? '');
    if (!/ (is|are) connected/.test(page)) throw new Error(`${name} was not paired: ${page.slice(0, 200)}`);
  }

  /** A firewall refuses all refreshes. @returns ends that; call it for the number of refused requests */
  async blockPortals(): Promise<() => Promise<number>> {
    const { id } = await this.appliances.askPortal<{ id: string }>('POST', '/_emulator/faults', FIREWALL);
    return async () => {
      const { faults } = await this.appliances.askPortal<{ faults: { id: string; hits: number }[] }>(
        'GET',
        '/_emulator/faults',
      );
      await this.appliances.askPortal('DELETE', `/_emulator/faults/${id}`);
      return faults.find((fault) => fault.id === id)?.hits ?? 0;
    };
  }

  /** Imports a login of another program over the grant of a connection. Rejects if that fails. */
  async importOver(connection: string, { process }: SiteHub): Promise<void> {
    const token = await this.appliances.logInElsewhere(connection, this.#clientOf(portalOf(connection)));
    rememberSecrets([token]);
    this.imported.add(token);
    await process.ask((control) =>
      control.request('importGrant', { name: connection, refresh_token: token, replace: true }),
    );
  }

  /**
   * Pairs a connection at a hub, and unpairs it at another one during its refresh.
   * @returns the id of its grant at the portal
   */
  async unpairDuringRefresh(hub: SiteHub, other: SiteHub): Promise<string> {
    await this.pair(GUEST, hub);
    const grant = await eventually(() =>
      other.process.ask((control) =>
        control.request('token', { name: GUEST }).then(
          ({ access_token }) => access_token,
          () => null,
        ),
      ),
    );
    const { clientId: client } = this.#clientOf('guest');
    await this.appliances.askPortal('POST', '/_emulator/faults', { ...SLOW_REFRESH, client });
    const refreshed = hub.process.ask((control) => control.request('refresh', { name: GUEST })).catch(() => undefined);
    await sleep(250);
    await other.process.ask((control) => control.request('unpair', { name: GUEST }));
    await refreshed;
    return grant.split('.')[0] ?? '';
  }

  /** Adds a hub to the site, which appliances ask as well. */
  async addGuest(): Promise<SiteHub> {
    const host = this.#lan.hosts[GUEST_HUB];
    await host.run('/usr/sbin/nft', ['flush ruleset']);
    const guest = await SiteHub.prepare(GUEST_HUB, host, this.#configuration, this.faults);
    this.#guest = guest;
    await guest.launch();
    await this.appliances.ask(this.#asked);
    return guest;
  }

  /** Stops the hub that was added, and removes it from the site's list. */
  async removeGuest(): Promise<void> {
    const guest = this.#guest;
    if (guest === null) return;
    this.#guest = null;
    await this.appliances.ask(this.#asked);
    await guest.process.kill('SIGTERM');
    // It counts as running for some seconds after its last heartbeat.
    await eventually(async () => {
      const removed = this.healthyHub?.process.ask((control) => control.request('removeHub', { name: GUEST_HUB }));
      return (await removed?.then(() => true).catch(() => false)) === true;
    }, 60);
    await guest[Symbol.asyncDispose]();
  }

  get #asked(): readonly AskedHub[] {
    return this.members.map(({ name, origin }) => ({ name, origin }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#guest?.[Symbol.asyncDispose]();
    await this.#resources.disposeAsync();
  }
}

function portalOf(connection: string): PortalName {
  if (connection === GUEST) return 'guest';
  return connection.startsWith('paced-') ? 'paced' : 'home';
}

import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { type Broker, openBroker } from '../../src/broker/open-broker.ts';
import type { ConnectedPortal } from '../../src/broker/ports.ts';
import type { Log } from '../../src/core/log.ts';
import type { Portal } from '../../src/core/portals/portal.ts';
import { Secret } from '../../src/core/secret.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/open-store.ts';
import { systemRandom } from '../../src/system/random.ts';
import { createAuthority, issueLeaf } from '../../src/system/x509/issuing.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { stateParameterOf } from '../support/hub-process.ts';
import { logTo } from '../support/log-to.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { stateFolder } from '../support/state-folder.ts';

/**
 * What is wrong with the connection to the portal. Dropped packets are tested with the real daemon
 * (`network-partition.ts`), because connect timeouts take real time, and a day has ten thousand.
 */
export const OUTAGES = ['refused', 'name unknown', 'another certificate', '503', '503 in 5 min'] as const;
export type Outage = (typeof OUTAGES)[number];

/** An attempt to refresh. `at` is by the fleet's wall clock, in ms. */
interface Attempt {
  readonly grant: string;
  readonly at: number;
  readonly granted: boolean;
}

/** A grant of the fleet. */
export interface VirtualGrant {
  readonly id: string;
  /** Whether an appliance requests its token every two minutes. */
  readonly asked: boolean;
  readonly hub: VirtualHub;
}

const CONNECTED: Omit<ConnectedPortal, 'portal'> = {
  identity: { origin: 'https://portal.example', clientId: 'the-fleet', name: 'home', otherOrigins: [] },
  credentialLocation: { portal: 'home' },
  retryLostAnswer: 'early',
  loginLifetime: null,
  idleLifetime: null,
  refreshEndsAccessToken: false,
};
const SILENT: Log = logTo(() => undefined);
/** The interval of an appliance's token requests, in ms. */
const TOKEN_REQUEST_INTERVAL = 120_000;
/** A port without a server. No test can get this port by chance. */
const REFUSING = 'http://127.0.0.1:1';
/** A label of a host name has at most 63 characters, so this name is unknown without a DNS query. */
const UNKNOWN = `http://${'a'.repeat(64)}.test`;

/** A fleet of hubs with one portal, in virtual time, with real connections and real stores. */
export class VirtualFleet implements AsyncDisposable {
  readonly activity: PendingWork;
  readonly time: FakeTime;
  readonly attempts: Attempt[] = [];
  readonly grants: VirtualGrant[] = [];
  readonly hubs: VirtualHub[] = [];
  readonly emulator: Emulator;
  readonly random: SeededRandom;
  readonly #portals: ReadonlyMap<Outage | null, HelperPortal>;
  readonly #servers: readonly Server[];
  #outage: Outage | null = null;

  private constructor(emulator: Emulator, random: SeededRandom, time: FakeTime, activity: PendingWork, routes: Routes) {
    this.emulator = emulator;
    this.random = random;
    this.time = time;
    this.activity = activity;
    this.#portals = routes.portals;
    this.#servers = routes.servers;
  }

  /**
   * Starts the hubs and pairs their appliances.
   * @param hubs the number of hubs
   * @param each the number of grants per hub; an appliance requests the token of the first one
   */
  static async build(hubs: number, each: number, random: SeededRandom): Promise<VirtualFleet> {
    const activity = new PendingWork();
    const time = new FakeTime(activity);
    const emulator = await startEmulator({ clock: time });
    const fleet = new VirtualFleet(emulator, random, time, activity, await createRoutes(emulator));
    for (let index = 0; index < hubs; index++) {
      const names = Array.from({ length: each }, (_, grant) => `appliance-${grant}`);
      const hub = await VirtualHub.start(fleet, names);
      fleet.hubs.push(hub);
      for (const [grant, name] of names.entries()) {
        fleet.grants.push({ id: await hub.pair(name), asked: grant === 0, hub });
        await time.pass(Math.round((2 * 3_600_000 * random.fraction()) / (hubs * each)));
      }
    }
    for (const grant of fleet.grants) if (grant.asked) fleet.#requestTokens(grant);
    await time.pass(2 * 3_600_000);
    return fleet;
  }

  /** The grants without a valid token, or with a problem. */
  get stale(): VirtualGrant[] {
    return this.grants.filter(({ id, hub }) => {
      const held = hub.broker?.grants.get(id);
      return (
        held === undefined || held.health.kind !== 'good' || (hub.broker?.grants.schedule.remaining(held) ?? 0) <= 0
      );
    });
  }

  /** Begins an outage, or ends it with null. */
  async setOutage(outage: Outage | null): Promise<void> {
    this.#outage = outage;
    await this.emulator.clearFaults();
    if (outage !== '503' && outage !== '503 in 5 min') return;
    const headers = outage === '503' ? {} : { 'retry-after': '300' };
    this.emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, headers, times: null });
  }

  /** Cuts the power for `off` ms. Afterwards every hub starts within one minute. */
  async powerCut(off: number): Promise<void> {
    for (const hub of this.hubs) hub.cut();
    this.time.reboot(this.time.wall + off);
    for (const hub of this.hubs) {
      this.time.after(60_000 * this.random.fraction(), () => void this.activity.track(hub).start());
    }
    for (const grant of this.grants) if (grant.asked) this.#requestTokens(grant);
  }

  /** The portal as the hubs of the fleet see it. */
  portal(): Portal {
    const current = () => {
      const portal = this.#portals.get(this.#outage) ?? this.#portals.get(null);
      if (portal === undefined) throw new Error('there is no client for the portal');
      return portal;
    };
    return {
      redirectAddress: null,
      requestLink: (...args) => current().requestLink(...args),
      poll: (...args) => current().poll(...args),
      fetchTime: () => current().fetchTime(),
      exchangeCode: (...args) => current().exchangeCode(...args),
      refresh: (token) => current().refresh(token),
      revoke: (token) => current().revoke(token),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of this.hubs) hub.cut();
    for (const portal of this.#portals.values()) await portal[Symbol.asyncDispose]();
    for (const server of this.#servers) server.close();
    await this.emulator[Symbol.asyncDispose]();
    for (const hub of this.hubs) hub[Symbol.dispose]();
  }

  #requestTokens(grant: VirtualGrant): void {
    const again = () => {
      void grant.hub.broker?.tokenIssuer.issue(grant.id, null);
      this.time.after(TOKEN_REQUEST_INTERVAL, again);
    };
    this.time.after(TOKEN_REQUEST_INTERVAL * this.random.fraction(), again);
  }
}

/**
 * A hub of the fleet: its broker, in which each appliance has its own portal name, so that its refreshes can be
 * counted.
 */
export class VirtualHub implements Disposable {
  readonly #fleet: VirtualFleet;
  readonly #folder = stateFolder();
  readonly #jitterOffsets = new Map<string, number>();
  readonly #names: readonly string[];
  /** Null while it has no power. */
  broker: Broker | null = null;
  #cut: () => void = () => undefined;

  private constructor(fleet: VirtualFleet, names: readonly string[]) {
    this.#fleet = fleet;
    this.#names = names;
  }

  /** @param names the names of its appliances */
  static async start(fleet: VirtualFleet, names: readonly string[]): Promise<VirtualHub> {
    const hub = new VirtualHub(fleet, names);
    await hub.start();
    return hub;
  }

  async start(): Promise<void> {
    const { time, activity, random: seeded } = this.#fleet;
    const random = { ...systemRandom, fraction: () => seeded.fraction() };
    const environment = { clock: time, timers: time, random, log: SILENT, emit: () => undefined };
    const sealing = jweSealing(new Uint8Array(STORE_KEY_BYTES).fill(7));
    const opened = await openStore(this.#folder.path, sealing, () => time.wall);
    const store = activity.track(opened);
    const fleetPortal = this.#fleet.portal();
    const portals = new Map<string, ConnectedPortal>();
    const broker = await openBroker({
      environment,
      store,
      portals: {
        names: this.#names,
        get: (name) => {
          const portal = portals.get(name) ?? { portal: this.#counting(fleetPortal, name), ...CONNECTED };
          portals.set(name, portal);
          return portal;
        },
        nameOf: () => undefined,
      },
      pairingTimes: { lifetime: 900_000, pollInterval: 5000 },
      declarations: { connections: [], appliances: [], file: '' },
      jitterOffset: (id) => {
        const jitterOffset = this.#jitterOffsets.get(id) ?? seeded.fraction();
        this.#jitterOffsets.set(id, jitterOffset);
        return jitterOffset;
      },
    });
    this.broker = broker;
    this.#cut = () => {
      broker.scheduler[Symbol.dispose]();
      opened[Symbol.dispose]();
    };
  }

  /** A portal that counts the refreshes of an appliance. */
  #counting(portal: Portal, name: string): Portal {
    const { activity, attempts, time } = this.#fleet;
    return activity.track({
      ...portal,
      refresh: async (token) => {
        const outcome = await portal.refresh(token);
        const grant = this.broker?.appliances.find(name)?.id ?? name;
        attempts.push({ grant, at: time.wall, granted: outcome.kind === 'granted' });
        return outcome;
      },
    } satisfies Portal);
  }

  /** @returns the appliance's id */
  async pair(name: string): Promise<string> {
    if (this.broker === null) throw new Error('the hub is off');
    const { appliances, connections, pairings } = this.broker;
    const { time, emulator } = this.#fleet;
    const { appliance } = await appliances.add(name, { connection: null, scope: null, portal: name });
    const run = await pairings.begin(connections.ofAppliance(appliance));
    await time.settle();
    const { step } = run.pairing;
    if (step.kind !== 'waiting') throw new Error(`the pairing has no link: ${step.kind}`);
    await emulator.login({ state: stateParameterOf(step.link.authorizeUrl), user: 'demo' });
    await time.pass(10_000);
    return appliance.id;
  }

  /** Cuts its power. */
  cut(): void {
    this.#cut();
    this.#cut = () => undefined;
    this.broker = null;
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

interface Routes {
  readonly portals: ReadonlyMap<Outage | null, HelperPortal>;
  readonly servers: readonly Server[];
}

/** A client for each outage, with a real server or a real error at its end. */
async function createRoutes(emulator: Emulator): Promise<Routes> {
  const portal = (frontendUrl: string) =>
    new HelperPortal({
      baseUrl: emulator.baseUrl,
      frontendUrl,
      clientId: emulator.clientId,
      clientSecret: new Secret(emulator.clientSecret),
      credentialLocation: { portal: 'home' },
      ca: [],
    });
  const leaf = await issueLeaf(await createAuthority(), { names: [], addresses: ['127.0.0.1'], now: Date.now() });
  const foreign = createSecureServer({ cert: leaf.certificate, key: leaf.key });
  await once(foreign.listen(0, '127.0.0.1'), 'listening');
  const { port: another } = foreign.address() as AddressInfo;
  return {
    servers: [foreign],
    portals: new Map<Outage | null, HelperPortal>([
      [null, portal(emulator.frontendUrl)],
      ['refused', portal(REFUSING)],
      ['name unknown', portal(UNKNOWN)],
      ['another certificate', portal(`https://127.0.0.1:${another}`)],
    ]),
  };
}

import { type Broker, openBroker } from '../../src/broker/open-broker.ts';
import type { ConnectedPortal } from '../../src/broker/ports.ts';
import type { Log } from '../../src/core/log.ts';
import type { Portal } from '../../src/core/portals/portal.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import { systemRandom } from '../../src/system/random.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { stateParameterOf } from '../support/hub-process.ts';
import { logTo } from '../support/log-to.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { stateFolder } from '../support/state-folder.ts';
import { type Clients, createRoutes, OUTAGE_FAULTS, type Outage, PACED, type Routes } from './fleet-routes.ts';
import { kindInTurn, PORTAL_KINDS, type PortalKind } from './portal-kinds.ts';

/** An attempt to refresh. `at` is by the fleet's wall clock, in ms. */
interface Attempt {
  readonly grant: string;
  readonly at: number;
  readonly granted: boolean;
}

/** A grant of the fleet. */
export interface VirtualGrant {
  readonly id: string;
  readonly kind: PortalKind;
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

/**
 * A fleet of hubs whose grants are at portals of all kinds, all of one emulator, in virtual time, with real connections
 * and real stores.
 */
export class VirtualFleet implements AsyncDisposable {
  readonly activity: PendingWork;
  readonly time: FakeTime;
  readonly attempts: Attempt[] = [];
  readonly grants: VirtualGrant[] = [];
  readonly hubs: VirtualHub[] = [];
  readonly emulator: Emulator;
  readonly random: SeededRandom;
  readonly #routes: Routes;
  #clients: ReadonlyMap<Outage | null, Clients>;
  #outage: Outage | null = null;

  private constructor(emulator: Emulator, random: SeededRandom, time: FakeTime, activity: PendingWork, routes: Routes) {
    this.emulator = emulator;
    this.random = random;
    this.time = time;
    this.activity = activity;
    this.#routes = routes;
    this.#clients = routes.connect();
  }

  /**
   * Starts the hubs and pairs their appliances.
   * @param hubs the number of hubs
   * @param each the number of grants per hub; an appliance requests the token of the first one
   */
  static async build(hubs: number, each: number, random: SeededRandom): Promise<VirtualFleet> {
    const activity = new PendingWork();
    const time = new FakeTime(activity);
    const emulator = await startEmulator({ clock: time, contentEncoding: 'br' });
    const fleet = new VirtualFleet(
      emulator,
      random,
      time,
      activity,
      await createRoutes(emulator, time, activity.sleepless(time)),
    );
    for (let index = 0; index < hubs; index++) {
      const kinds = Array.from({ length: each }, (_, grant) => kindInTurn(index + grant));
      const hub = await VirtualHub.start(fleet, new Map(kinds.map((kind, grant) => [`appliance-${grant}`, kind])));
      fleet.hubs.push(hub);
      for (const [grant, kind] of kinds.entries()) {
        fleet.grants.push({ id: await hub.pair(`appliance-${grant}`), kind, asked: grant === 0, hub });
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

  /** How often a request has waited for its turn at the paced portal. */
  get waits(): number {
    return this.#routes.waits;
  }

  /** Begins an outage, or ends it with null. */
  async setOutage(outage: Outage | null): Promise<void> {
    this.#outage = outage;
    await this.emulator.clearFaults();
    this.emulator.change({ contentEncoding: this.random.pick(['gzip', 'deflate', 'br'] as const) });
    const fault = outage === null ? undefined : OUTAGE_FAULTS[outage];
    if (fault !== undefined) this.emulator.addFault(fault);
  }

  /** Cuts the power for `off` ms. Afterwards every hub starts within one minute. */
  async powerCut(off: number): Promise<void> {
    for (const hub of this.hubs) hub.cut();
    await this.#disconnect();
    this.time.reboot(this.time.wall + off);
    this.#clients = this.#routes.connect();
    for (const hub of this.hubs) {
      this.time.after(60_000 * this.random.fraction(), () => void this.activity.track(hub).start());
    }
    for (const grant of this.grants) if (grant.asked) this.#requestTokens(grant);
  }

  /** A portal as the hubs of the fleet see it. */
  portal(kind: PortalKind): Portal {
    const current = () => {
      const clients = this.#clients.get(this.#outage) ?? this.#clients.get(null);
      if (clients === undefined) throw new Error('there is no client for the portal');
      return clients[kind];
    };
    return {
      redirectAddress: null,
      requestLink: (...args) => current().requestLink(...args),
      poll: (...args) => current().poll(...args),
      fetchTime: () => current().fetchTime(),
      prepareTokenRequest: (signal) => current().prepareTokenRequest(signal),
      exchangeCode: (...args) => current().exchangeCode(...args),
      refresh: (token) => current().refresh(token),
      revoke: (token) => current().revoke(token),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of this.hubs) hub.cut();
    await this.#disconnect();
    this.#routes.foreign.close();
    await this.emulator[Symbol.asyncDispose]();
    for (const hub of this.hubs) hub[Symbol.dispose]();
  }

  async #disconnect(): Promise<void> {
    for (const clients of this.#clients.values()) {
      for (const kind of PORTAL_KINDS) await clients[kind][Symbol.asyncDispose]();
    }
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
  readonly #appliances: ReadonlyMap<string, PortalKind>;
  /** Null while it has no power. */
  broker: Broker | null = null;
  #cut: () => void = () => undefined;

  private constructor(fleet: VirtualFleet, appliances: ReadonlyMap<string, PortalKind>) {
    this.#fleet = fleet;
    this.#appliances = appliances;
  }

  /** @param appliances their names, with the kind of the portal of each */
  static async start(fleet: VirtualFleet, appliances: ReadonlyMap<string, PortalKind>): Promise<VirtualHub> {
    const hub = new VirtualHub(fleet, appliances);
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
    const portals = new Map(
      [...this.#appliances].map(([name, kind]): [string, ConnectedPortal] => [
        name,
        { portal: this.#counting(this.#fleet.portal(kind), name), ...CONNECTED },
      ]),
    );
    const broker = await openBroker({
      environment,
      store,
      portals: {
        names: [...portals.keys()],
        get: (name) => portals.get(name),
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
    const { appliance } = await appliances.add(name, { connections: [], scope: null, portal: name });
    const run = await pairings.begin(connections.ofAppliance(appliance));
    // The portal may be a paced one, and another grant may just have been refreshed.
    await time.pass(PACED.interval);
    const { step } = run.pairing;
    if (step.kind !== 'waiting') throw new Error(`the pairing has no link: ${step.kind}`);
    const { link } = step;
    if (link.kind === 'device') await emulator.approveDevice({ userCode: link.userCode, user: 'demo' });
    else await emulator.login({ state: stateParameterOf(link.authorizeUrl), user: 'demo' });
    await time.pass(20_000);
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

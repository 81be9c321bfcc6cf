import { once } from 'node:events';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createSecureServer } from 'node:tls';
import { type Broker, openBroker } from '../../src/broker/open-broker.ts';
import type { ConnectedPortal } from '../../src/broker/ports.ts';
import type { Log } from '../../src/core/log.ts';
import type { Portal } from '../../src/core/portal.ts';
import { Secret } from '../../src/core/secret.ts';
import { type Emulator, startEmulator } from '../../src/emulator/index.ts';
import { HttpPortal } from '../../src/portal/http-portal.ts';
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
 * What is the matter with the way to the portal. A black hole is left to the real daemon (`cut-off.ts`): a connection is
 * given up in real time, and in a day there are ten thousand.
 */
export const OUTAGES = ['refused', 'name unknown', 'another certificate', '503', '503 in 5 min'] as const;
export type Outage = (typeof OUTAGES)[number];

/** An attempt to refresh: `at` is by the street's wall clock, in ms. */
interface Attempt {
  readonly grant: string;
  readonly at: number;
  readonly granted: boolean;
}

/** One grant of the street. */
export interface VirtualGrant {
  readonly id: string;
  /** Whether an appliance asks for its token every other minute. */
  readonly asked: boolean;
  readonly hub: VirtualHub;
}

const CONNECTED: Omit<ConnectedPortal, 'portal'> = {
  identity: { origin: 'https://portal.example', clientId: 'the-street', name: 'home', otherOrigins: [] },
  credentialLocation: { portal: 'home' },
  retryLostAnswer: 'early',
  redirectUrl: () => null,
};
const SILENT: Log = logTo(() => undefined);
/** How often an appliance asks, in ms. */
const ASKS_EVERY = 120_000;
/** Nobody listens there, and no test is given this port for a server of its own, which would know nothing of the street's tokens. */
const REFUSING = 'http://127.0.0.1:1';
/** A label of a name is at most 63 characters long: this one is unknown without anybody being asked. */
const UNKNOWN = `http://${'a'.repeat(64)}.test`;

/** A street of hubs with one portal, in virtual time, over real connections and on real stores. */
export class VirtualFleet implements AsyncDisposable {
  readonly activity: PendingWork;
  readonly time: FakeTime;
  readonly attempts: Attempt[] = [];
  readonly grants: VirtualGrant[] = [];
  readonly hubs: VirtualHub[] = [];
  readonly emulator: Emulator;
  readonly random: SeededRandom;
  readonly #portals: ReadonlyMap<Outage | null, HttpPortal>;
  readonly #servers: readonly Server[];
  #outage: Outage | null = null;

  private constructor(emulator: Emulator, random: SeededRandom, time: FakeTime, activity: PendingWork, ways: Ways) {
    this.emulator = emulator;
    this.random = random;
    this.time = time;
    this.activity = activity;
    this.#portals = ways.portals;
    this.#servers = ways.servers;
  }

  /**
   * @param hubs how many
   * @param each how many grants a hub has; for the first of them an appliance asks
   */
  static async build(hubs: number, each: number, random: SeededRandom): Promise<VirtualFleet> {
    const activity = new PendingWork();
    const time = new FakeTime(activity);
    const emulator = await startEmulator({ clock: time });
    const street = new VirtualFleet(emulator, random, time, activity, await ways(emulator));
    for (let index = 0; index < hubs; index++) {
      const names = Array.from({ length: each }, (_, grant) => `appliance-${grant}`);
      const hub = await VirtualHub.start(street, names);
      street.hubs.push(hub);
      for (const [grant, name] of names.entries()) {
        street.grants.push({ id: await hub.pair(name), asked: grant === 0, hub });
        await time.pass(Math.round((2 * 3_600_000 * random.fraction()) / (hubs * each)));
      }
    }
    for (const grant of street.grants) if (grant.asked) street.#ask(grant);
    await time.pass(2 * 3_600_000);
    return street;
  }

  /** The grants without a token that lives, or with a problem. */
  get stale(): VirtualGrant[] {
    return this.grants.filter(({ id, hub }) => {
      const held = hub.broker?.grants.get(id);
      return (
        held === undefined || held.health.kind !== 'good' || (hub.broker?.grants.schedule.remaining(held) ?? 0) <= 0
      );
    });
  }

  /** The way to the portal from now on. */
  async setOutage(outage: Outage | null): Promise<void> {
    this.#outage = outage;
    await this.emulator.clearFaults();
    if (outage !== '503' && outage !== '503 in 5 min') return;
    const headers = outage === '503' ? {} : { 'retry-after': '300' };
    this.emulator.addFault({ kind: 'status', endpoint: 'token', status: 503, headers, times: null });
  }

  /** The power goes, and is back after so many ms: every hub starts within the same minute. */
  async powerCut(off: number): Promise<void> {
    for (const hub of this.hubs) hub.cut();
    this.time.reboot(this.time.wall + off);
    for (const hub of this.hubs) {
      this.time.after(60_000 * this.random.fraction(), () => void this.activity.track(hub).start());
    }
    for (const grant of this.grants) if (grant.asked) this.#ask(grant);
  }

  /** What a hub of the street takes for the portal. */
  portal(): Portal {
    const way = () => {
      const portal = this.#portals.get(this.#outage) ?? this.#portals.get(null);
      if (portal === undefined) throw new Error('there is no way to the portal');
      return portal;
    };
    return {
      requestLink: (...of) => way().requestLink(...of),
      pollCode: (...of) => way().pollCode(...of),
      fetchTime: () => way().fetchTime(),
      exchangeCode: (...of) => way().exchangeCode(...of),
      refresh: (token) => way().refresh(token),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const hub of this.hubs) hub.cut();
    for (const portal of this.#portals.values()) await portal[Symbol.asyncDispose]();
    for (const server of this.#servers) server.close();
    await this.emulator[Symbol.asyncDispose]();
    for (const hub of this.hubs) hub[Symbol.dispose]();
  }

  #ask(grant: VirtualGrant): void {
    const again = () => {
      void grant.hub.broker?.tokenIssuer.issue(grant.id, null);
      this.time.after(ASKS_EVERY, again);
    };
    this.time.after(ASKS_EVERY * this.random.fraction(), again);
  }
}

/** One hub of the street: its broker, of which each appliance has a portal by a name of its own. */
export class VirtualHub implements Disposable {
  readonly #street: VirtualFleet;
  readonly #folder = stateFolder();
  readonly #spreads = new Map<string, number>();
  readonly #names: readonly string[];
  /** Null while it has no power. */
  broker: Broker | null = null;
  #cut: () => void = () => undefined;

  private constructor(street: VirtualFleet, names: readonly string[]) {
    this.#street = street;
    this.#names = names;
  }

  /** @param names of its appliances */
  static async start(street: VirtualFleet, names: readonly string[]): Promise<VirtualHub> {
    const hub = new VirtualHub(street, names);
    await hub.start();
    return hub;
  }

  async start(): Promise<void> {
    const { time, activity, random: chance } = this.#street;
    const random = { ...systemRandom, fraction: () => chance.fraction() };
    const environment = { clock: time, timers: time, random, log: SILENT, emit: () => undefined };
    const sealing = jweSealing(new Uint8Array(STORE_KEY_BYTES).fill(7));
    const opened = await openStore(this.#folder.path, sealing, () => time.wall);
    const store = activity.track(opened);
    const way = this.#street.portal();
    const portals = new Map<string, ConnectedPortal>();
    const broker = await openBroker({
      environment,
      store,
      portals: {
        names: this.#names,
        get: (name) => {
          const portal = portals.get(name) ?? { portal: this.#counting(way, name), ...CONNECTED };
          portals.set(name, portal);
          return portal;
        },
        nameOf: () => undefined,
      },
      pairingTimes: { lifetime: 900_000, pollInterval: 5000 },
      declarations: { appliances: [], file: '' },
      jitterOffset: (id) => {
        const jitterOffset = this.#spreads.get(id) ?? chance.fraction();
        this.#spreads.set(id, jitterOffset);
        return jitterOffset;
      },
    });
    this.broker = broker;
    this.#cut = () => {
      broker.scheduler[Symbol.dispose]();
      opened[Symbol.dispose]();
    };
  }

  /** The way to the portal, on which each refresh of an appliance is counted. */
  #counting(way: Portal, name: string): Portal {
    const { activity, attempts, time } = this.#street;
    return activity.track({
      ...way,
      refresh: async (token) => {
        const outcome = await way.refresh(token);
        const grant = this.broker?.appliances.find(name)?.id ?? name;
        attempts.push({ grant, at: time.wall, granted: outcome.kind === 'granted' });
        return outcome;
      },
    } satisfies Portal);
  }

  /** @returns the appliance's id */
  async pair(name: string): Promise<string> {
    if (this.broker === null) throw new Error('the hub is off');
    const { appliances, pairings } = this.broker;
    const { time, emulator } = this.#street;
    const { appliance } = await appliances.add(name, null, name);
    const run = await pairings.begin(appliance);
    await time.settle();
    const { step } = run.pairing;
    if (step.kind !== 'waiting') throw new Error(`nobody can log in: ${step.kind}`);
    await emulator.login({ state: stateParameterOf(step.link.authorizeUrl), user: 'demo' });
    await time.pass(10_000);
    return appliance.id;
  }

  /** It has no power any more. */
  cut(): void {
    this.#cut();
    this.#cut = () => undefined;
    this.broker = null;
  }

  [Symbol.dispose](): void {
    this.#folder[Symbol.dispose]();
  }
}

interface Ways {
  readonly portals: ReadonlyMap<Outage | null, HttpPortal>;
  readonly servers: readonly Server[];
}

/** A client for each way: what is at its end is real. */
async function ways(emulator: Emulator): Promise<Ways> {
  const portal = (frontendUrl: string) =>
    new HttpPortal({
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
    portals: new Map<Outage | null, HttpPortal>([
      [null, portal(emulator.frontendUrl)],
      ['refused', portal(REFUSING)],
      ['name unknown', portal(UNKNOWN)],
      ['another certificate', portal(`https://127.0.0.1:${another}`)],
    ]),
  };
}

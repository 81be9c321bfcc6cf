import { appendFileSync } from 'node:fs';
import { request } from 'undici';
import type { Credentials } from '../../src/broker/appliances/appliances.ts';
import type { Environment } from '../../src/broker/environment.ts';
import { type Broker, openBroker } from '../../src/broker/open-broker.ts';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { BrokerStore, ConnectedPortal } from '../../src/broker/ports.ts';
import type { DeclaredAppliance } from '../../src/core/appliances/appliance.ts';
import { Failure } from '../../src/core/failure.ts';
import type { RetryLostAnswer } from '../../src/core/grants/retry-delays.ts';
import type { CallbackBrowser } from '../../src/core/lan-service.ts';
import type { LogFields } from '../../src/core/log.ts';
import type { PairingStep } from '../../src/core/pairings/pairing.ts';
import type { ConfiguredPortal, Portal, PortalIdentity } from '../../src/core/portal.ts';
import type { ApplianceEvent, EmitEvent } from '../../src/core/reports/appliance-event.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Store } from '../../src/core/store.ts';
import { type Emulator, type EmulatorOptions, startEmulator } from '../../src/emulator/index.ts';
import { HttpPortal } from '../../src/portal/http-portal.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite-store.ts';
import { createLog } from '../../src/system/log.ts';
import { systemRandom } from '../../src/system/random.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { FaultyPortal } from '../support/faulty-portal.ts';
import { logTo } from '../support/log-to.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { delayWrites, MAX_WRITE_DELAY_MS, storeSeed } from '../support/slow-store.ts';
import { memoryStateFolder } from '../support/state-folder.ts';

/** Turns of the event loop that a write takes at the most while a test waits for it and lets no time pass. */
const MAX_TURNS = 10;

export interface BrokerHarnessOptions {
  readonly emulator?: EmulatorOptions;
  readonly retryLostAnswer?: RetryLostAnswer;
  readonly fraction?: number;
  /** Where the portal shall bring the code; default: nowhere. */
  readonly redirect?: (nonce: string) => string | null;
  readonly lifetime?: number;
  readonly pollInterval?: number;
  /** How long the writes of the store take, in ms, from the one to the other; default: up to what a worn card takes. */
  readonly writeTimes?: readonly [least: number, most: number];
}

/** A browser that the hub has not sent to the portal. */
export const UNKNOWN_BROWSER: CallbackBrowser = { address: '192.168.1.23', browserBinding: null };

/** One run of the broker on the state folder. */
export interface RunningBroker extends Broker {
  readonly store: SqliteStore;
}

/** A home: the parts of a hub in virtual time, on a real store, with a way to a real emulator. */
export class BrokerHarness implements AsyncDisposable {
  readonly #activity = new PendingWork();
  readonly time = new FakeTime(this.#activity);
  /** Writes of the store with these names fail, as on a full disk. */
  readonly failingWrites = new Set<keyof Store>();
  /** Writes of the store with these names begin only when this resolves. */
  readonly delayedWrites = new Map<keyof Store, Promise<void>>();
  /** False: the configuration has no portal. */
  configured = true;
  /** The appliances that the configuration declares, from the next start on. */
  declared: readonly DeclaredAppliance[] = [];
  /** Which portal the configuration says; by default the one that is there. */
  identity: (Omit<PortalIdentity, 'name'> & Partial<ConfiguredPortal>) | null = null;
  /** The portal's client breaks in a way that none of its outcomes names. */
  portalThrows = false;
  /** How many refreshes were tried, those that never left the hub too. */
  refreshAttempts = 0;
  /** The events that were logged. */
  readonly events: { readonly level: string; readonly event: string; readonly fields: LogFields }[] = [];
  /** What the journal has of it: the lines of the hub's own log, as it is by default. */
  readonly journal: string[] = [];
  /** What was told to whoever keeps books. */
  readonly emittedEvents: ApplianceEvent[] = [];
  /** Beside `told`, who hears of it. */
  listener: EmitEvent = () => undefined;
  readonly #emit: EmitEvent = (event) => {
    this.emittedEvents.push(event);
    this.listener(event);
  };
  readonly #journal = createLog('info', { write: (line) => void this.journal.push(line) }, () => this.time.uptime);
  readonly #log = logFile('broker');
  readonly #folder = memoryStateFolder();
  readonly #options: BrokerHarnessOptions;
  readonly #secrets: string[] = [];
  readonly #random = new SeededRandom(storeSeed());
  #emulator: Emulator | undefined;
  #portal: FaultyPortal | undefined;
  #run: RunningBroker | undefined;
  #environment: Environment | undefined;
  #client: HttpPortal | undefined;

  private constructor(options: BrokerHarnessOptions) {
    this.#options = options;
  }

  static async start(options: BrokerHarnessOptions = {}): Promise<BrokerHarness> {
    const home = new BrokerHarness(options);
    home.#emulator = await startEmulator({ clock: home.time, ...options.emulator });
    home.#portal = await FaultyPortal.start(home.#emulator);
    await home.start();
    return home;
  }

  get emulator(): Emulator {
    return there(this.#emulator);
  }

  get portal(): FaultyPortal {
    return there(this.#portal);
  }

  /** What the parts that run have been given. */
  get environment(): Environment {
    return there(this.#environment);
  }

  get run(): RunningBroker {
    return there(this.#run);
  }

  get folder(): string {
    return this.#folder.path;
  }

  /** Starts the hub on what the run before has left. */
  async start(): Promise<RunningBroker> {
    const random = { ...systemRandom, fraction: () => this.#options.fraction ?? 0.5 };
    const environment = { clock: this.time, timers: this.time, random, log: this.#logger(), emit: this.#emit };
    this.#environment = environment;
    const sealing = jweSealing(new Uint8Array(STORE_KEY_BYTES).fill(7));
    const store = await openStore(this.folder, sealing, () => this.time.wall);
    const port = this.#slow(this.#activity.track(this.#failing(store)));
    this.#client = new HttpPortal({
      baseUrl: this.portal.baseUrl,
      frontendUrl: this.portal.frontendUrl,
      clientId: this.emulator.clientId,
      clientSecret: new Secret(this.emulator.clientSecret),
      credentialLocation: { portal: 'home' },
      ca: [],
    });
    const client = this.#client;
    const portal: Portal = this.#activity.track({
      requestLink: (...of) => client.requestLink(...of),
      pollCode: (...of) => client.pollCode(...of),
      fetchTime: () => client.fetchTime(),
      exchangeCode: (...of) => client.exchangeCode(...of),
      refresh: async (token) => {
        this.refreshAttempts += 1;
        if (this.portalThrows) throw new Error('unheard of');
        return client.refresh(token);
      },
    } satisfies Portal);
    const { frontendUrl: origin } = this.portal;
    const given = this.identity ?? { origin, clientId: this.emulator.clientId };
    const identity = { name: 'home', otherOrigins: [], ...given };
    const connected: ConnectedPortal = {
      ...{
        portal,
        identity,
        credentialLocation: { portal: 'home' },
        retryLostAnswer: this.#options.retryLostAnswer ?? 'early',
      },
      redirectUrl: this.#options.redirect ?? (() => null),
    };
    const broker = await openBroker({
      environment,
      store: port,
      portals: {
        names: ['home', 'other'],
        get: (name) => (this.configured && name === 'home' ? connected : undefined),
        nameOf: () => undefined,
      },
      pairingTimes: {
        lifetime: this.#options.lifetime ?? 900_000,
        pollInterval: this.#options.pollInterval ?? 5000,
      },
      declarations: { appliances: this.declared, file: '/etc/l.toml' },
      jitterOffset: () => 0.5,
    });
    await broker.resumePairings();
    this.#run = { ...broker, store };
    return this.#run;
  }

  /** Stops the hub in good order. */
  async stop(): Promise<void> {
    const { run } = this;
    await run[Symbol.asyncDispose]();
    await this.#client?.[Symbol.asyncDispose]();
    run.store[Symbol.dispose]();
    this.#run = undefined;
  }

  /** Power is cut: nothing that runs may write any more. */
  async crash(): Promise<void> {
    const { run } = this;
    run.store[Symbol.dispose]();
    run.scheduler[Symbol.dispose]();
    void run[Symbol.asyncDispose]();
    this.#run = undefined;
  }

  async addAppliance(name: string, scope: string | null = 'Monitoring'): Promise<Credentials> {
    const credentials = await this.run.appliances.add(name, scope, null);
    this.#secrets.push(credentials.secret.reveal());
    return credentials;
  }

  /** Begins a pairing, and comes back when a person may log in. */
  async beginPairing(name: string): Promise<PairingRun> {
    const run = await this.run.pairings.begin(this.run.appliances.get(name));
    await this.time.settle();
    return run;
  }

  /** Somebody logs in, or refuses, through the link of this pairing. */
  async login(run: PairingRun, deny = false): Promise<string> {
    const { step } = run.pairing;
    if (step.kind !== 'waiting') throw new Error(`nobody can log in: the pairing is ${step.kind}`);
    const state = new URL(step.link.authorizeUrl).searchParams.get('state') ?? '';
    const { location } = await this.emulator.login({ state, user: 'demo', deny });
    return location;
  }

  /** An appliance with a grant; gives its id. */
  async addPairedAppliance(name = 'wallbox', scope: string | null = 'Monitoring'): Promise<string> {
    const { appliance } = await this.addAppliance(name, scope);
    await this.pairAgain(name);
    return appliance.id;
  }

  async pairAgain(name: string): Promise<void> {
    const run = await this.beginPairing(name);
    await this.login(run);
    await this.time.pass(10_000);
    if (pairingResult(run.pairing.step) !== 'paired') throw new Error(`not paired: ${pairingResult(run.pairing.step)}`);
  }

  /** The token that is handed out, or what is instead of it. */
  async token(appliance: string): Promise<string> {
    const handOut = await this.run.tokenIssuer.issue(appliance, null);
    return handOut.kind === 'token' ? handOut.accessToken.reveal() : handOut.kind;
  }

  /** What the portal says to a token: HTTP 200 or 401. */
  async whoami(token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` };
    const { statusCode, body } = await request(`${this.emulator.baseUrl}/api/whoami`, { headers });
    await body.dump();
    return statusCode;
  }

  /** How many refreshes the way to the portal has seen. */
  get refreshes(): number {
    return this.portal.requests('token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length;
  }

  /** How many exchanges of a code. */
  get exchanges(): number {
    return this.portal.requests('token').length - this.refreshes;
  }

  /** Lets ms pass until the next refresh is over. */
  async untilRefreshed(longest = 3_600_000): Promise<void> {
    const before = this.refreshes;
    for (let passed = 0; this.refreshes === before && passed < longest; passed += 1000) await this.time.pass(1000);
    if (this.refreshes === before) throw new Error('nothing was refreshed');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rememberSecrets([...this.#secrets, ...this.emulator.secretsIssued(), this.emulator.clientSecret]);
    if (this.#run !== undefined) await this.stop();
    await this.portal[Symbol.asyncDispose]();
    await this.emulator.close();
    this.#folder[Symbol.dispose]();
  }

  #logger() {
    return logTo((event, fields, level) => {
      this.events.push({ level, event, fields });
      // @ts-expect-error: the table has checked it where it was logged
      this.#journal.at(level, event, fields);
      appendFileSync(this.#log, `${JSON.stringify({ level, event, ...fields })}\n`);
    });
  }

  /** A write takes as long as the seed says, so that writes end in any order. */
  #slow(store: BrokerStore): BrokerStore {
    const [least, most] = this.#options.writeTimes ?? [0, MAX_WRITE_DELAY_MS];
    const dice = this.#random;
    return delayWrites(store, () =>
      this.time.lapse(dice.whole(least, most), most === 0 ? 0 : dice.whole(0, MAX_TURNS)),
    );
  }

  #failing(store: SqliteStore): BrokerStore {
    return new Proxy<BrokerStore>(store, {
      get: (object, name) => {
        const member: unknown = Reflect.get(object, name, object);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]) => {
          await this.delayedWrites.get(name as keyof Store);
          if (this.failingWrites.has(name as keyof Store)) throw new Failure('store_unwritable', 'the disk is full');
          return Reflect.apply(member, object, args);
        };
      },
    });
  }
}

/** `paired`, the reason why not, or how far it has come. */
export function pairingResult(step: PairingStep): string {
  if (step.kind !== 'ended') return step.kind;
  return step.result.kind === 'failed' ? step.result.reason : step.result.kind;
}

function there<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the home is not started');
  return value;
}

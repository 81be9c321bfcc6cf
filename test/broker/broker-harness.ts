import { appendFileSync } from 'node:fs';
import { request } from 'undici';
import { onTestFinished } from 'vitest';
import type { Credentials } from '../../src/broker/appliances/appliances.ts';
import { type Broker, openBroker } from '../../src/broker/open-broker.ts';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { BrokerStore, ConnectedPortal, Environment } from '../../src/broker/ports.ts';
import { applianceStatus } from '../../src/broker/status/appliance-status.ts';
import { connectionStatus } from '../../src/broker/status/connection-status.ts';
import type { PortalConfiguration } from '../../src/configuration/portals.ts';
import type { DeclaredAppliance } from '../../src/core/appliances/appliance.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { Connection, DeclaredConnection } from '../../src/core/connections/connection.ts';
import { Failure } from '../../src/core/failure.ts';
import type { LostAnswerRetry } from '../../src/core/grants/login-end.ts';
import type { CallbackBrowser } from '../../src/core/lan-service.ts';
import type { LogFields } from '../../src/core/log.ts';
import type { PairingStep } from '../../src/core/pairings/pairing.ts';
import type { ConfiguredPortal, PortalIdentity } from '../../src/core/portals/identity.ts';
import type { Portal } from '../../src/core/portals/portal.ts';
import type { ConnectionEvent, EmitEvent } from '../../src/core/reports/history.ts';
import { Secret } from '../../src/core/secret.ts';
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts';
import { connectPortals, type Portals } from '../../src/hub/portals/connect-portals.ts';
import { HelperPortal } from '../../src/portal/helper/helper-portal.ts';
import type { OAuth2Portal } from '../../src/portal/oauth2/oauth2-portal.ts';
import type { OAuth2Settings } from '../../src/portal/oauth2/settings.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { CommitTimes } from '../../src/store/sqlite/commit-times.ts';
import { openStore } from '../../src/store/sqlite/open-store.ts';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.ts';
import { createLog } from '../../src/system/log.ts';
import { systemRandom } from '../../src/system/random.ts';
import { connectOAuth2Portal } from '../portal/oauth2/oauth2-portal-harness.ts';
import { FakeTime, PendingWork } from '../support/fake-time.ts';
import { FaultyPortal } from '../support/faulty-portal.ts';
import { type BorrowedEmulator, borrowEmulator } from '../support/idle-emulators.ts';
import { logTo } from '../support/log-to.ts';
import { logFile, rememberSecrets } from '../support/logs.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { MAX_WRITE_DELAY_MS, storeSeed } from '../support/slow-store.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { aroundCalls, delayWrites, type StoreMethod } from '../support/store-calls.ts';

/** The most turns of the event loop that a write takes if a test waits for it without letting time pass. */
const MAX_TURNS = 10;

export interface BrokerHarnessOptions {
  readonly emulator?: EmulatorOptions;
  readonly retryLostAnswer?: LostAnswerRetry;
  /** When logins at the portal end, and what its refreshes end; default: nothing. */
  readonly limits?: Partial<Pick<ConnectedPortal, 'loginLifetime' | 'idleLifetime' | 'refreshEndsAccessToken'>>;
  readonly fraction?: number;
  /** The redirect URL for a nonce; default: none. */
  readonly redirect?: (nonce: string) => string | null;
  /**
   * The portal is an OAuth 2.0 server with these settings; its client is the emulator's first one. Default: a helper
   * portal.
   */
  readonly oauth2?: Partial<OAuth2Settings> & { readonly discovers?: true };
  /** The configured portals, of which `home` is used, instead of the settings above. */
  readonly portals?: (emulator: Emulator) => Promise<readonly PortalConfiguration[]>;
  readonly lifetime?: number;
  readonly pollInterval?: number;
  /** The shortest and longest time of a store write, in ms; default: up to the time of a worn SD card. */
  readonly writeTimes?: readonly [least: number, most: number];
}

/** The scope and the portal of a new connection; default: `Monitoring` at the default portal. */
interface ConnectionSettings {
  readonly scope?: string | null;
  readonly portal?: string | null;
}

/** A browser that the hub did not send to the portal. */
export const UNKNOWN_BROWSER: CallbackBrowser = { address: '192.168.1.23', browserToken: null };

/** One run of the broker on the state folder. */
export interface RunningBroker extends Broker {
  readonly store: SqliteStore;
}

/** The broker in virtual time, on a real store, connected to a real emulator. It ends with its test. */
export class BrokerHarness implements AsyncDisposable {
  readonly #activity = new PendingWork();
  readonly time = new FakeTime(this.#activity);
  /** Store writes with these names fail, as on a full disk. */
  readonly failingWrites = new Set<StoreMethod>();
  /** Store writes with these names begin only when the promise resolves. */
  readonly delayedWrites = new Map<StoreMethod, Promise<void>>();
  /** False: no portal is configured. */
  configured = true;
  /** The appliances that the configuration declares from the next start on. */
  declared: readonly DeclaredAppliance[] = [];
  /** The connections that the configuration declares. */
  declaredConnections: readonly DeclaredConnection[] = [];
  /** The identity of the configured portal; null for the emulator's. */
  identity: (Omit<PortalIdentity, 'name'> & Partial<ConfiguredPortal>) | null = null;
  /** The number of refresh attempts, including those that never left the hub. */
  refreshAttempts = 0;
  /** The events that were logged. */
  readonly events: { readonly level: string; readonly event: string; readonly fields: LogFields }[] = [];
  /** The log lines at the default level, as the journal has them. */
  readonly journal: string[] = [];
  /** The emitted events. */
  readonly emittedEvents: ConnectionEvent[] = [];
  /** The shortest and longest time of a store write, in ms. */
  writeTimes: readonly [least: number, most: number];
  /** How long the writes of the store take in virtual time. */
  readonly commitTimes = new CommitTimes(() => this.time.uptime);
  /** Also receives the emitted events. */
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
  #emulator: BorrowedEmulator | undefined;
  #portal: FaultyPortal | undefined;
  #run: RunningBroker | undefined;
  #environment: Environment | undefined;
  #client: AsyncDisposable | undefined;
  #disposed = false;

  private constructor(options: BrokerHarnessOptions) {
    this.#options = options;
    this.writeTimes = options.writeTimes ?? [0, MAX_WRITE_DELAY_MS];
  }

  static async start(options: BrokerHarnessOptions = {}): Promise<BrokerHarness> {
    const harness = new BrokerHarness(options);
    onTestFinished(() => harness[Symbol.asyncDispose]());
    harness.#emulator = await borrowEmulator(harness.time, options.emulator);
    harness.#portal = await FaultyPortal.start(harness.emulator);
    await harness.start();
    return harness;
  }

  /** Starts it with an appliance, `wallbox`, that is not paired. @returns also its credentials, and its id */
  static async startUnpaired(options: BrokerHarnessOptions = {}) {
    const harness = await BrokerHarness.start(options);
    const credentials = await harness.addAppliance('wallbox');
    return { harness, ...credentials, id: credentials.appliance.id };
  }

  /** Starts it with a paired appliance, `wallbox`. @returns also the appliance's id, which is that of its connection */
  static async startPaired(options: BrokerHarnessOptions = {}) {
    const harness = await BrokerHarness.start(options);
    return { harness, id: await harness.addPairedAppliance() };
  }

  get emulator(): Emulator {
    return started(this.#emulator).emulator;
  }

  get portal(): FaultyPortal {
    return started(this.#portal);
  }

  /** The environment of the current run. */
  get environment(): Environment {
    return started(this.#environment);
  }

  get run(): RunningBroker {
    return started(this.#run);
  }

  get folder(): string {
    return this.#folder.path;
  }

  /** Starts the broker on the state that the last run left. */
  async start(): Promise<RunningBroker> {
    const random = { ...systemRandom, fraction: () => this.#options.fraction ?? 0.5 };
    const environment = { clock: this.time, timers: this.time, random, log: this.#logger(), emit: this.#emit };
    this.#environment = environment;
    const sealing = jweSealing(new Uint8Array(STORE_KEY_BYTES).fill(7));
    const store = await openStore(this.folder, sealing, () => this.time.wall);
    const port = this.#slow(this.#activity.track(this.#failing(store)));
    const portals = await this.#connectConfigured(store);
    const configured = portals?.get('home');
    const unconfigured = configured === undefined ? this.#connect() : undefined;
    const client: Portal = configured?.portal ?? started(unconfigured);
    this.#client = portals ?? unconfigured;
    const portal: Portal = this.#activity.track({
      get redirectAddress() {
        return client.redirectAddress;
      },
      requestLink: (...args) => client.requestLink(...args),
      poll: (...args) => client.poll(...args),
      fetchTime: () => client.fetchTime(),
      prepareTokenRequest: (signal) => client.prepareTokenRequest(signal),
      exchangeCode: (...args) => client.exchangeCode(...args),
      revoke: (...args) => client.revoke(...args),
      refresh: async (token) => {
        this.refreshAttempts += 1;
        return client.refresh(token);
      },
    } satisfies Portal);
    const { frontendUrl: origin } = this.portal;
    const configuredIdentity = this.identity ?? { origin, clientId: this.emulator.clientId };
    const identity = { name: 'home', otherOrigins: [], ...configuredIdentity };
    const connected: ConnectedPortal = {
      identity,
      credentialLocation: { portal: 'home' },
      retryLostAnswer: this.#options.retryLostAnswer ?? 'early',
      loginLifetime: null,
      idleLifetime: null,
      refreshEndsAccessToken: false,
      ...this.#options.limits,
      ...configured,
      portal,
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
      declarations: { connections: this.declaredConnections, appliances: this.declared, file: '/etc/l.toml' },
      jitterOffset: () => 0.5,
    });
    await broker.resumePairings();
    this.#run = { ...broker, store };
    return this.#run;
  }

  async #connectConfigured(store: SqliteStore): Promise<Portals | undefined> {
    const configurations = await this.#options.portals?.(this.emulator);
    if (configurations === undefined) return undefined;
    return connectPortals(configurations, {
      address: () => '192.168.1.7',
      httpPort: 8480,
      clock: this.time,
      random: systemRandom,
      store,
      timers: this.#activity.sleepless(this.time),
      log: this.#logger(),
    });
  }

  #connect(): HelperPortal | OAuth2Portal {
    const { oauth2, redirect } = this.#options;
    const { clientId } = this.emulator;
    const clientSecret = new Secret(this.emulator.clientSecret);
    const common = { credentialLocation: { portal: 'home' }, ca: [] };
    if (oauth2 === undefined) {
      const { baseUrl, frontendUrl } = this.portal;
      const redirectUrl = (nonce: string) => redirect?.(nonce) ?? null;
      return new HelperPortal({ ...common, baseUrl, frontendUrl, clientId, clientSecret, redirectUrl });
    }
    const endpoints = {
      authorization: `${this.emulator.frontendUrl}/oauth2/authorize`,
      token: `${this.portal.frontendUrl}/oauth2/token`,
      deviceAuthorization: `${this.portal.frontendUrl}/oauth2/device_authorization`,
      revocation: `${this.portal.frontendUrl}/oauth2/revoke`,
    };
    return connectOAuth2Portal(this.emulator, {
      issuer: oauth2.discovers === true ? this.emulator.frontendUrl : null,
      endpoints,
      clientId,
      clientAuth: 'post',
      clientSecret,
      ...oauth2,
      clock: this.time,
      timers: this.#activity.sleepless(this.time),
    });
  }

  /** Stops the broker gracefully. */
  async stop(): Promise<void> {
    const { run } = this;
    await run[Symbol.asyncDispose]();
    await this.#client?.[Symbol.asyncDispose]();
    run.store[Symbol.dispose]();
    this.#run = undefined;
  }

  /** Stops the broker gracefully, and starts it again. */
  async restart(): Promise<RunningBroker> {
    await this.stop();
    return this.start();
  }

  /** Stops the broker gracefully, and starts it again in the next boot, at this time of the wall clock. */
  async reboot(wall = this.time.wall): Promise<RunningBroker> {
    await this.stop();
    this.time.reboot(wall);
    return this.start();
  }

  /** Simulates a power cut: no running part may write any more. */
  async crash(): Promise<void> {
    const { run } = this;
    run.store[Symbol.dispose]();
    run.scheduler[Symbol.dispose]();
    void run[Symbol.asyncDispose]();
    this.#run = undefined;
  }

  /** The next writes of this name begin only when the returned promise is resolved. */
  holdWrites(name: StoreMethod): PromiseWithResolvers<void> {
    const held = Promise.withResolvers<void>();
    this.delayedWrites.set(name, held.promise);
    return held;
  }

  async addAppliance(name: string, scope: string | null = 'Monitoring'): Promise<Credentials> {
    const credentials = await this.run.appliances.add(name, { connections: [], scope, portal: null });
    this.#secrets.push(credentials.secret.reveal());
    return credentials;
  }

  /** Adds a connection that appliances can share. */
  addConnection(name: string, { scope = 'Monitoring', portal = null }: ConnectionSettings = {}): Promise<Connection> {
    return this.run.connections.add(name, scope, portal);
  }

  /** Adds an appliance that uses an existing connection. @returns its id */
  async addUser(name: string, connection: string): Promise<string> {
    const { appliance, secret } = await this.run.appliances.add(name, {
      connections: [connection],
      scope: null,
      portal: null,
    });
    this.#secrets.push(secret.reveal());
    return appliance.id;
  }

  /** The connection of an appliance, or the shared one with this name. */
  connection(name: string): Connection {
    const { connections, appliances } = this.run;
    const appliance = appliances.find(name);
    return appliance === undefined ? connections.get(name) : connections.ofAppliance(appliance);
  }

  /** The status of an appliance. */
  statusOf(name: string): ApplianceStatus {
    const appliance = this.run.appliances.get(name);
    const used = this.run.connections.allOfAppliance(appliance);
    const statuses = used.map((connection) => connectionStatus(connection, this.run, () => ''));
    return applianceStatus(appliance, statuses, this.run);
  }

  /** Begins a pairing; resolves when a person may log in. */
  async beginPairing(name: string): Promise<PairingRun> {
    const run = await this.run.pairings.begin(this.connection(name));
    await this.time.settle();
    return run;
  }

  /** Logs in, or refuses to, through the link of this pairing. */
  async login(run: PairingRun, deny = false): Promise<string> {
    const { step } = run.pairing;
    if (step.kind !== 'waiting') throw new Error(`nobody can log in: the pairing is ${step.kind}`);
    const state = new URL(step.link.authorizeUrl).searchParams.get('state') ?? '';
    const { location } = await this.emulator.login({ state, user: 'demo', deny });
    return location;
  }

  /** Adds an appliance and pairs it. @returns its id */
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

  /** The issued token, or the kind of result if there is none. */
  async token(appliance: string): Promise<string> {
    const result = await this.run.tokenIssuer.issue(appliance, null);
    return result.kind === 'token' ? result.accessToken.reveal() : result.kind;
  }

  /** The HTTP status of a request to the portal with this token: 200 or 401. */
  async whoami(token: string): Promise<number> {
    const headers = { authorization: `Bearer ${token}` };
    const { statusCode, body } = await request(`${this.emulator.baseUrl}/api/whoami`, { headers });
    await body.dump();
    return statusCode;
  }

  /** The number of refreshes that reached the faulty portal. */
  get refreshes(): number {
    return this.portal.requests('token').filter(({ form }) => form.get('grant_type') === 'refresh_token').length;
  }

  /** The number of code exchanges. */
  get exchanges(): number {
    return this.portal.requests('token').length - this.refreshes;
  }

  /** Lets time pass, at most `longest` ms, until the next refresh has ended. */
  async untilRefreshed(longest = 3_600_000): Promise<void> {
    const before = this.refreshes;
    for (let passed = 0; this.refreshes === before && passed < longest; passed += 1000) await this.time.pass(1000);
    if (this.refreshes === before) throw new Error('nothing was refreshed');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    const { clientSecret } = this.emulator;
    rememberSecrets([
      ...[...this.#secrets, ...started(this.#emulator).secretsIssued()],
      ...(clientSecret === '' ? [] : [clientSecret]),
    ]);
    if (this.#run !== undefined) await this.stop();
    await this.portal[Symbol.asyncDispose]();
    await this.#emulator?.[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }

  #logger() {
    return logTo((event, fields, level) => {
      this.events.push({ level, event, fields });
      // @ts-expect-error: the call that logged it was checked already
      this.#journal.at(level, event, fields);
      appendFileSync(this.#log, `${JSON.stringify({ level, event, ...fields })}\n`);
    });
  }

  /** The seed decides how long each write takes, so writes may end in any order. */
  #slow(store: BrokerStore): BrokerStore {
    const random = this.#random;
    return delayWrites(store, async () => {
      const [min, max] = this.writeTimes;
      const end = this.commitTimes.begin();
      await this.time.lapse(random.whole(min, max), max === 0 ? 0 : random.whole(0, MAX_TURNS));
      end();
    });
  }

  #failing(store: SqliteStore): BrokerStore {
    return aroundCalls(store, async (name, call) => {
      await this.delayedWrites.get(name as StoreMethod);
      if (this.failingWrites.has(name as StoreMethod)) throw new Failure('store_unwritable', 'the disk is full');
      return call();
    });
  }
}

/** `paired`, the failure reason, or the current step. */
export function pairingResult(step: PairingStep): string {
  if (step.kind !== 'ended') return step.kind;
  return step.result.kind === 'failed' ? step.result.reason : step.result.kind;
}

function started<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the harness is not started');
  return value;
}

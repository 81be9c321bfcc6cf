import type {
  Administration,
  HubStatus,
  InviteRequest,
  IssuedInvite,
  StoreKeyRotationResult,
} from '../../src/core/administration.ts';
import type { ConnectionChoice } from '../../src/core/appliances/appliance.ts';
import type { ApplianceStatus } from '../../src/core/appliances/appliance-status.ts';
import type { GrantImport, WantedToken } from '../../src/core/connections/connection-administration.ts';
import type { ConnectionStatus, LoginStatus } from '../../src/core/connections/connection-status.ts';
import { Failure } from '../../src/core/failure.ts';
import type { Notice } from '../../src/core/health/notice.ts';
import { checkName } from '../../src/core/name.ts';
import type { PairingStatus, PairingView } from '../../src/core/pairings/pairing-administration.ts';
import type { HistoryEntry } from '../../src/core/reports/history.ts';
import { Secret } from '../../src/core/secret.ts';
import { rememberSecrets } from '../support/logs.ts';
import { ScriptedPairing } from './scripted-pairing.ts';
import {
  applianceStatus,
  byNameOrder,
  connectionStatus,
  connectionsOf,
  hubStatus,
  hubStatusReport,
  named,
  PAGE,
  withLoginOf,
} from './status-samples.ts';

function unscripted(): never {
  throw new Failure('unexpected', 'the fake administration has no script for that');
}

/** A hub's administration in memory, for tests of its clients. */
export class FakeAdministration implements Administration {
  readonly appliances = new Map<string, ApplianceStatus>();
  /** The connections that were added, by name; every other appliance has one of its own. */
  readonly addedConnections = new Map<string, ConnectionStatus>();
  readonly pairings = new Map<string, ScriptedPairing>();
  /** The reports that the next pairing makes at once. */
  script: PairingStatus[] = [];
  /** The result of a rotation of the store key. */
  rotation: StoreKeyRotationResult = { leftovers: [], snapshotProblem: null, isCredential: false };
  /** What everything waits for that needs the portal, and a restore and a reload. */
  portal: Promise<void> = Promise.resolve();
  readonly accessToken = `at-${crypto.randomUUID()}`;
  readonly issued: string[] = [];
  readonly passphrases: string[] = [];
  /** How often a restore or a reload was requested. */
  restoreAndReloadCalls = 0;
  restarts = 0;
  reloads = 0;
  readonly invites: InviteRequest[] = [];

  asUser = () => this;
  hasUnusedSecret = () => false;
  readonly imports: GrantImport[] = [];
  /** The history of every connection, the newest entry first. */
  events: HistoryEntry[] = [];
  /** The names of the appliances that have keys instead of a secret. */
  readonly appliancesWithKeys = new Set<string>();
  hub: HubStatus = hubStatus({ version: '0.1.0', caFingerprint: 'pin-of-the-ca', uptime: 7384 });

  setup = { code: 'BCDF-GHJK-LMNP-QRST', page: PAGE, rotations: 0 };

  constructor() {
    rememberSecrets([this.accessToken]);
  }

  async setupCode() {
    const { code, page } = this.setup;
    const token = crypto.randomUUID();
    rememberSecrets([token]);
    const signInUrl = new Secret(`${page}sign-in/${token}`);
    const stablePageUrl = 'https://latchkey-1a2b3c.local:8443/';
    return { code: new Secret(code), pageUrl: page, stablePageUrl, signInUrl, signInExpiresIn: 600 };
  }

  async rotateSetupCode() {
    this.setup = { ...this.setup, code: 'QRST-VWXZ-BCDF-GHJK', rotations: this.setup.rotations + 1 };
    return this.setupCode();
  }

  history = async () => this.events;

  getOpenPairing = async () => [...this.pairings.keys()].at(-1) ?? '';

  getOrStartPairing = (name: string) => this.pair(name);

  getPairing(id: string): PairingView {
    const status = this.#findPairing(id).reports.at(-1) ?? { event: 'connecting', problem: null, expiresIn: 900 };
    const none = { lastFailure: null, portal: null, scope: null, unconfirmed: [], batch: null, newestPairing: null };
    return { id, connection: 'wallbox', status, credentialLocation: { portal: 'home' }, ...none };
  }

  /** The addresses that were pasted, each with its pairing. */
  readonly pasted: (readonly [pairing: string, address: string])[] = [];

  async pasteAddress(id: string, address: string): Promise<void> {
    this.pasted.push([id, address]);
    if (!address.includes('code='))
      throw new Failure('address_rejected', 'this is not the address of a finished login');
    this.pairings.get(id)?.push({ event: 'paired', scope: null });
  }
  retryPairing = unscripted;
  cancelPairing = unscripted;
  confirmLogin = unscripted;
  pairingsVersion = () => '';
  pairAll = unscripted;
  startNextPairing = unscripted;
  getBatch = unscripted;

  label(name: string) {
    const path = `:8443/p/${name}`;
    const link = `https://${this.hub.id}.local${path}`;
    return { name, title: name, hubName: this.hub.name, link, addressLink: `https://192.168.1.7${path}` };
  }

  notices: Notice[] = [];

  async status() {
    const appliances = [...this.appliances.values()];
    return hubStatusReport(this.hub, appliances, this.notices, Date.now(), this.connections());
  }

  testNotices = unscripted;
  portals = unscripted;
  describePortals = unscripted;
  cloudChoices = unscripted;
  enteredPortal = unscripted;
  addPortal = unscripted;
  removePortal = unscripted;

  async checkPortal() {
    await this.portal;
    return [];
  }

  /** For how many seconds the old CA is kept; null if there is none. */
  keptOldCa: number | null = null;
  rotations = 0;

  caStatus() {
    const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
    const old = { certificate: pem('OLD0'), fingerprint: 'the-pin-of-before', until: '2031-05-05T00:00:00Z' };
    const own = { certificate: pem('AAAA'), fingerprint: this.hub.caFingerprint };
    return this.keptOldCa === null ? own : { ...own, old };
  }

  async rotateCa(keep: number) {
    this.rotations += 1;
    return this.setOldCaLifetime(keep);
  }

  async setOldCaLifetime(keep: number) {
    this.keptOldCa = keep === 0 ? null : keep;
    return this.caStatus();
  }

  async addAppliance(name: string, { connections: [connection = name], scope }: ConnectionChoice) {
    checkName('appliance', name);
    if (this.appliances.has(name)) throw new Failure('appliance_exists', `${name} exists already: choose another name`);
    this.set({ name, scope, connection });
    return this.#credentials(name);
  }

  /** Adds an appliance or changes it. If it uses an added connection, it shows the login of that one. */
  set(appliance: Partial<ApplianceStatus> & { name: string }): ApplianceStatus {
    const whole = applianceStatus({ ...this.appliances.get(appliance.name), ...appliance });
    const added = this.addedConnections.get(whole.connection);
    this.appliances.set(whole.name, added === undefined ? whole : withLoginOf(whole, added));
    return this.#find(whole.name);
  }

  /** Adds a connection or changes it, and what its appliances show. */
  setConnection(connection: Partial<ConnectionStatus> & { name: string }): ConnectionStatus {
    const { name } = connection;
    this.addedConnections.set(name, connectionStatus({ ...this.addedConnections.get(name), ...connection }));
    for (const user of this.appliances.values()) if (user.connection === name) this.set(user);
    return this.#findConnection(name);
  }

  /** All connections, added ones and appliances' own, sorted by name. */
  connections(): ConnectionStatus[] {
    const users = [...this.appliances.values()];
    const added = [...this.addedConnections.values()].map((connection) => {
      const names = users.flatMap((user) => (user.connection === connection.name ? [user.name] : [])).sort();
      return { ...connection, users: named(...names) };
    });
    const own = connectionsOf(users.filter(({ connection }) => !this.addedConnections.has(connection)));
    return [...added, ...own].sort(byNameOrder);
  }

  async moveAppliance(name: string, [connection = '']: readonly string[]) {
    return this.set(withLoginOf({ ...this.#find(name), connection }, this.#findConnection(connection)));
  }

  async renameAppliance(name: string, title: string) {
    return this.set({ ...this.#find(name), title });
  }

  async renameConnection(name: string, title: string) {
    return this.setConnection({ ...this.#findConnection(name), title });
  }

  async addConnection(name: string, scope: string | null) {
    return this.setConnection({ name, scope });
  }

  async removeConnection(name: string, evenIfUsed: boolean) {
    const { users } = this.#findConnection(name);
    if (users.length > 0 && !evenIfUsed)
      throw new Failure(
        'connection_in_use',
        `${users.map((user) => user.name).join(', ')} use the connection ${name}: add --yes`,
      );
    this.addedConnections.delete(name);
    return this.isPortalTold;
  }

  async importGrant(request: GrantImport) {
    await this.portal;
    this.imports.push(request);
    return this.#setLogin(checkName('connection', request.name), { state: 'active', expiresIn: 3000 });
  }

  removeHub = unscripted;

  async removeAppliance(name: string) {
    this.#find(name);
    this.appliances.delete(name);
    return this.isPortalTold;
  }

  async rotateSecret(name: string, replaceKeys: boolean) {
    if (this.appliancesWithKeys.has(name) && !replaceKeys)
      throw new Failure('appliance_has_keys', `${name} authenticates with a key: add --yes to confirm`);
    this.appliancesWithKeys.delete(name);
    return this.#credentials(name);
  }

  async approveAppliance(
    name: string,
    code: string | null,
    connection: string | null,
    portal?: string | null,
  ): Promise<ApplianceStatus> {
    const { waitingForApproval: waiting, ...found } = this.#find(name);
    const approved = { ...found, portal: portal ?? found.portal };
    if (code !== null && code !== waiting?.comparisonCode)
      throw new Failure('not_allowed', `the code of ${name} differs, so it was not approved`);
    this.appliances.set(name, approved);
    return connection === null ? approved : this.moveAppliance(name, [connection]);
  }

  async invite(request: InviteRequest): Promise<IssuedInvite> {
    const { name, scope, ttl } = request;
    this.invites.push(request);
    return { token: this.#issue('iat'), name, scope, expiresIn: ttl, ...this.#registration() };
  }

  async openRegistration(seconds: number) {
    const { registrationOpenFor: _, ...closed } = this.hub;
    this.hub = seconds === 0 ? closed : { ...closed, registrationOpenFor: seconds };
    return this.#registration();
  }

  async pair(name: string): Promise<string> {
    this.#findConnection(name);
    const pairing = new ScriptedPairing();
    pairing.push(...this.script);
    const id = `pairing-${this.pairings.size + 1}`;
    this.pairings.set(id, pairing);
    return id;
  }

  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingStatus> {
    return this.#findPairing(id).follow(signal);
  }

  /** The shortest lifetime, in ms, and the refused token of each request for a token. */
  readonly tokensAsked: [number, string | null][] = [];
  /** Whether the portal is told of a login that ends. */
  isPortalTold = true;

  async unpair(name: string): Promise<boolean> {
    this.#findConnection(name);
    this.#setLogin(name, { state: 'unpaired' });
    return this.isPortalTold;
  }

  async token(name: string, { minTtl = 0, rejected = null }: Partial<WantedToken> = {}) {
    await this.portal;
    this.tokensAsked.push([minTtl, rejected?.reveal() ?? null]);
    return { accessToken: new Secret(this.accessToken), expiresIn: 3000, scope: this.#findConnection(name).scope };
  }

  async refresh(name: string): Promise<ConnectionStatus> {
    await this.portal;
    return this.#findConnection(name);
  }

  rotateStoreKey = async () => this.rotation;
  takeSnapshot = async () => ({ file: '/var/lib/latchkey/latchkey.db.copy', made: '2031-05-05T06:00:00Z' });

  async backUp(passphrase: string) {
    this.passphrases.push(passphrase);
    return { copy: 'a.sealed.copy', made: '2031-05-05T06:00:00Z', appliances: this.appliances.size, grants: 1 };
  }

  async restore(copy: string, passphrase: string) {
    if (copy.trim() !== 'a.sealed.copy') throw new Failure('copy_unusable', 'the copy is none');
    this.restoreAndReloadCalls += 1;
    await this.portal;
    this.passphrases.push(passphrase);
    const report = { made: '2031-05-05T06:00:00Z', hubId: this.hub.id, restored: ['wallbox'], kept: ['heater'] };
    const restart = () => {
      this.restarts += 1;
      this.hub = { ...this.hub, uptime: 0 };
    };
    return { report, restart };
  }

  async reload() {
    this.restoreAndReloadCalls += 1;
    await this.portal;
    return { id: 'a-reload', start: () => void this.reloads++ };
  }

  reloadOutcome = () => ({ state: 'done' }) as const;

  #find(name: string): ApplianceStatus {
    checkName('appliance', name);
    const appliance = this.appliances.get(name);
    if (appliance === undefined)
      throw new Failure('appliance_unknown', `there is no appliance ${name}: see latchkey appliance list`);
    return appliance;
  }

  #findConnection(name: string): ConnectionStatus {
    checkName('connection', name);
    const found = this.connections().find((connection) => connection.name === name);
    if (found === undefined)
      throw new Failure('connection_unknown', `there is no connection ${name}: see latchkey connection list`);
    return found;
  }

  /** Changes the login of a connection, which is added if there is none. */
  #setLogin(name: string, login: Partial<LoginStatus>): ConnectionStatus {
    const isOwn = this.appliances.get(name)?.connection === name && !this.addedConnections.has(name);
    if (!isOwn) return this.setConnection({ name, ...login });
    this.set({ name, ...login });
    return this.#findConnection(name);
  }

  #findPairing(id: string): ScriptedPairing {
    const pairing = this.pairings.get(id);
    if (pairing === undefined) throw new Failure('pairing_unknown', `there is no pairing ${id}`);
    return pairing;
  }

  #credentials(name: string) {
    const { title, clientId } = this.#find(name);
    const { caFingerprint } = this.hub;
    const tokenEndpoint = 'https://192.168.1.7:8443/oauth/token';
    return { name, title, clientId, clientSecret: this.#issue('cs'), tokenEndpoint, caFingerprint };
  }

  #registration() {
    const registrationEndpoint = 'https://192.168.1.7:8443/oauth/register';
    return { registrationEndpoint, caFingerprint: this.hub.caFingerprint };
  }

  #issue(kind: string): Secret {
    const secret = `${kind}-${crypto.randomUUID()}`;
    rememberSecrets([secret]);
    this.issued.push(secret);
    return new Secret(secret);
  }
}

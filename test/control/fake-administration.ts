import type {
  Administration,
  ApplianceStatus,
  Backup,
  CaStatus,
  HubStatus,
  InviteRequest,
  IssuedCredentials,
  IssuedInvite,
  ReloadOutcome,
  StatusReport,
  StoreKeyRotationResult,
} from '../../src/core/administration.ts';
import { checkApplianceName, checkScope } from '../../src/core/appliances/appliance.ts';
import { Failure } from '../../src/core/failure.ts';
import { deriveConditions } from '../../src/core/health/derive-conditions.ts';
import type { ApplianceLabel, PairingStatus } from '../../src/core/pairings/pairing-administration.ts';
import type { HistoryEntry } from '../../src/core/reports/history.ts';
import type { HookTestResult, Notice } from '../../src/core/reports/notice.ts';
import { Secret } from '../../src/core/secret.ts';
import type { SetupCode } from '../../src/core/setup-access.ts';
import { rememberSecrets } from '../support/logs.ts';

/** The status of an unpaired appliance with these changes. */
export function applianceStatus(changes: Partial<ApplianceStatus> & { name: string }): ApplianceStatus {
  return {
    clientId: crypto.randomUUID(),
    state: 'unpaired',
    scope: null,
    expiresIn: null,
    refreshIn: null,
    lastRefresh: null,
    problem: null,
    portal: 'home',
    account: null,
    ...changes,
  };
}

/** The address of the installer's page of a {@link FakeAdministration}. */
export const PAGE = 'https://192.168.1.7:8443/';

/** A hub's status report, with the conditions that a hub derives. @param now the wall clock, in ms since 1970 */
export function hubStatusReport(
  hub: HubStatus,
  appliances: readonly ApplianceStatus[],
  notices: readonly Notice[] = [],
  now = Date.now(),
): StatusReport {
  return {
    hub,
    appliances,
    conditions: deriveConditions({ appliances, problems: hub.problems ?? [], pageUrl: PAGE, now }),
    notices,
  };
}

/** A pairing of a {@link FakeAdministration}. Tests push its reports and check whether a client follows it. */
export class ScriptedPairing {
  readonly reports: PairingStatus[] = [];
  followers = 0;
  #wake = Promise.withResolvers<void>();

  push(...reports: PairingStatus[]): void {
    this.reports.push(...reports);
    this.#wake.resolve();
    this.#wake = Promise.withResolvers<void>();
  }

  async *follow(signal: AbortSignal): AsyncGenerator<PairingStatus> {
    const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    this.followers += 1;
    try {
      for (let next = 0; !signal.aborted; ) {
        const report = this.reports[next];
        if (report === undefined) await Promise.race([this.#wake.promise, aborted]);
        else {
          next += 1;
          yield report;
          if (report.event === 'paired' || report.event === 'failed') return;
        }
      }
    } finally {
      this.followers -= 1;
    }
  }
}

function unscripted(): never {
  throw new Failure('unexpected', 'the fake administration has no script for that');
}

/** A hub's administration in memory, for tests of its clients. */
export class FakeAdministration implements Administration {
  readonly appliances = new Map<string, ApplianceStatus>();
  readonly pairings = new Map<string, ScriptedPairing>();
  /** The reports that the next pairing makes at once. */
  script: PairingStatus[] = [];
  /** The result of a rotation of the store key. */
  rotation: StoreKeyRotationResult = { leftovers: [], snapshotProblem: null, isCredential: false };
  /** What `token`, `refresh`, `restore` and `reload` wait for. */
  portal: Promise<void> = Promise.resolve();
  readonly accessToken = `at-${crypto.randomUUID()}`;
  readonly issued: string[] = [];
  readonly passphrases: string[] = [];
  /** How often a restore or a reload was requested. */
  restoreAndReloadCalls = 0;
  restarts = 0;
  reloads = 0;
  readonly invites: InviteRequest[] = [];
  /** The history of every appliance, the newest entry first. */
  events: HistoryEntry[] = [];
  /** The names of the appliances that have keys instead of a secret. */
  readonly appliancesWithKeys = new Set<string>();
  hub: HubStatus = {
    id: 'latchkey-1a2b3c',
    name: 'Cellar hub',
    version: '0.1.0',
    address: '192.168.1.7',
    httpPort: 8480,
    httpsPort: 8443,
    caFingerprint: 'pin-of-the-ca',
    configFile: '/etc/latchkey/latchkey.toml',
    uptime: 7384,
  };

  setup = { code: 'BCDF-GHJK-LMNP', page: PAGE, rotations: 0 };

  constructor() {
    rememberSecrets([this.accessToken]);
  }

  async setupCode(): Promise<SetupCode> {
    const { code, page } = this.setup;
    const token = crypto.randomUUID();
    rememberSecrets([token]);
    return {
      code: new Secret(code),
      pageUrl: page,
      signInUrl: new Secret(`${page}sign-in/${token}`),
      signInExpiresIn: 600,
    };
  }

  async rotateSetupCode(): Promise<SetupCode> {
    this.setup = { ...this.setup, code: 'QRST-VWXZ-BCDF', rotations: this.setup.rotations + 1 };
    return this.setupCode();
  }

  async history(name: string): Promise<HistoryEntry[]> {
    this.#find(name);
    return this.events;
  }

  getOrStartPairing = (name: string) => this.pair(name);
  getPairing = unscripted;
  retryPairing = unscripted;
  cancelPairing = unscripted;
  confirmLogin = unscripted;
  pairingsVersion = () => '';
  pairAll = unscripted;
  startNextPairing = unscripted;
  getBatch = unscripted;

  label(name: string): ApplianceLabel {
    const link = `https://${this.hub.id}.local:8443/p/${name}`;
    return { name, hubName: this.hub.name, link, addressLink: `https://192.168.1.7:8443/p/${name}` };
  }

  notices: Notice[] = [];
  trials: HookTestResult[] = [];

  async status() {
    return hubStatusReport(this.hub, [...this.appliances.values()], this.notices);
  }

  async testNotices() {
    return this.trials;
  }

  portals(): readonly string[] {
    return ['home'];
  }

  /** For how many seconds the old CA is kept; null if there is none. */
  keptOldCa: number | null = null;
  rotations = 0;

  caStatus(): CaStatus {
    const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
    const old = { certificate: pem('OLD0'), fingerprint: 'the-pin-of-before', until: '2031-05-05T00:00:00Z' };
    return {
      certificate: pem('AAAA'),
      fingerprint: this.hub.caFingerprint,
      ...(this.keptOldCa === null ? {} : { old }),
    };
  }

  async rotateCa(keep: number): Promise<CaStatus> {
    this.rotations += 1;
    this.keptOldCa = keep === 0 ? null : keep;
    return this.caStatus();
  }

  async setOldCaLifetime(keep: number): Promise<CaStatus> {
    this.keptOldCa = keep === 0 ? null : keep;
    return this.caStatus();
  }

  async addAppliance(name: string, scope: string | null, portal: string | null): Promise<IssuedCredentials> {
    checkApplianceName(name);
    if (this.appliances.has(name)) throw new Failure('appliance_exists', `${name} exists already: choose another name`);
    if (portal !== null && portal !== 'home') throw new Failure('portal_unknown', `there is no portal ${portal}`);
    this.set({ name, scope: checkScope(scope) });
    return this.#credentials(name);
  }

  /** Adds an appliance or changes it. */
  set(appliance: Partial<ApplianceStatus> & { name: string }): ApplianceStatus {
    const whole = applianceStatus({ ...this.appliances.get(appliance.name), ...appliance });
    this.appliances.set(whole.name, whole);
    return whole;
  }

  async removeAppliance(name: string): Promise<void> {
    this.#find(name);
    this.appliances.delete(name);
  }

  async rotateSecret(name: string, replaceKeys: boolean): Promise<IssuedCredentials> {
    this.#find(name);
    if (this.appliancesWithKeys.has(name) && !replaceKeys)
      throw new Failure(
        'appliance_has_keys',
        `${name} authenticates with a key, and a secret would replace the key: add --yes to confirm`,
      );
    this.appliancesWithKeys.delete(name);
    return this.#credentials(name);
  }

  async approveAppliance(name: string, code: string | null): Promise<ApplianceStatus> {
    const { waitingForApproval: waiting, ...approved } = this.#find(name);
    if (waiting === undefined) throw new Failure('not_allowed', `${name} is not waiting for approval`);
    const plain = (text: string) => text.replace('-', '').toUpperCase();
    if (code !== null && plain(code) !== plain(waiting.comparisonCode)) {
      throw new Failure('not_allowed', `the code of ${name} differs, so it was not approved`);
    }
    this.appliances.set(name, approved);
    return approved;
  }

  async invite(request: InviteRequest): Promise<IssuedInvite> {
    const { name, scope, portal, ttl } = request;
    if (name !== null && this.appliances.has(checkApplianceName(name)))
      throw new Failure('appliance_exists', `${name} exists`);
    if (portal !== null && portal !== 'home') throw new Failure('portal_unknown', `there is no portal ${portal}`);
    const token = `iat-${crypto.randomUUID()}`;
    rememberSecrets([token]);
    this.issued.push(token);
    this.invites.push(request);
    return {
      token: new Secret(token),
      name,
      scope: checkScope(scope),
      expiresIn: ttl,
      registrationEndpoint: 'https://192.168.1.7:8443/oauth/register',
      caFingerprint: this.hub.caFingerprint,
    };
  }

  /** Sets the number of appliances that have asked to join, until the result is disposed of. */
  setJoinRequests(count: number): Disposable {
    const before = this.hub;
    this.hub = { ...before, registrationAsked: count };
    return {
      [Symbol.dispose]: () => {
        this.hub = before;
      },
    };
  }

  async openRegistration(seconds: number) {
    const { registrationOpenFor: _, ...closed } = this.hub;
    this.hub = seconds === 0 ? closed : { ...closed, registrationOpenFor: seconds };
    return {
      registrationEndpoint: 'https://192.168.1.7:8443/oauth/register',
      caFingerprint: this.hub.caFingerprint,
    };
  }

  async pair(name: string): Promise<string> {
    this.#find(name);
    const pairing = new ScriptedPairing();
    pairing.push(...this.script);
    const id = `pairing-${this.pairings.size + 1}`;
    this.pairings.set(id, pairing);
    return id;
  }

  followPairing(id: string, signal: AbortSignal): AsyncIterable<PairingStatus> {
    const pairing = this.pairings.get(id);
    if (pairing === undefined) throw new Failure('pairing_unknown', `there is no pairing ${id}`);
    return pairing.follow(signal);
  }

  async unpair(name: string): Promise<void> {
    this.#find(name);
    this.set({ name, state: 'unpaired' });
  }

  async token(name: string) {
    const appliance = this.#find(name);
    await this.portal;
    if (appliance.state === 'unpaired')
      throw new Failure('token_unavailable', `${name} is not paired: latchkey pair ${name}`);
    return { accessToken: new Secret(this.accessToken), expiresIn: 3000, scope: appliance.scope };
  }

  async refresh(name: string): Promise<ApplianceStatus> {
    const appliance = this.#find(name);
    await this.portal;
    if (appliance.state === 'unpaired')
      throw new Failure('token_unavailable', `${name} is not paired: latchkey pair ${name}`);
    return appliance;
  }

  async rotateStoreKey() {
    return this.rotation;
  }

  async backUp(passphrase: string): Promise<Backup> {
    this.passphrases.push(passphrase);
    return { copy: 'a.sealed.copy', made: '2031-05-05T06:00:00Z', appliances: this.appliances.size, grants: 1 };
  }

  async restore(copy: string, passphrase: string) {
    if (copy.trim() !== 'a.sealed.copy') throw new Failure('copy_unusable', 'the copy is none');
    this.restoreAndReloadCalls += 1;
    await this.portal;
    this.passphrases.push(passphrase);
    const report = { made: '2031-05-05T06:00:00Z', hubId: this.hub.id, restored: ['wallbox'], kept: ['heater'] };
    return {
      report,
      restart: () => {
        this.restarts += 1;
      },
    };
  }

  async reload() {
    this.restoreAndReloadCalls += 1;
    await this.portal;
    return {
      id: 'a-reload',
      start: () => {
        this.reloads += 1;
      },
    };
  }

  reloadOutcome(id: string): ReloadOutcome {
    return { state: id === 'a-reload' ? 'done' : 'unknown' };
  }

  #find(name: string): ApplianceStatus {
    checkApplianceName(name);
    const appliance = this.appliances.get(name);
    if (appliance === undefined)
      throw new Failure('appliance_unknown', `there is no appliance ${name}: see latchkey appliance list`);
    return appliance;
  }

  #credentials(name: string): IssuedCredentials {
    const secret = `cs-${crypto.randomUUID()}`;
    rememberSecrets([secret]);
    this.issued.push(secret);
    return {
      name,
      clientId: this.#find(name).clientId,
      clientSecret: new Secret(secret),
      tokenEndpoint: 'https://192.168.1.7:8443/oauth/token',
      caFingerprint: this.hub.caFingerprint,
    };
  }
}

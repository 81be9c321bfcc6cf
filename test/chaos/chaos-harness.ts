import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConnectionResponse, CredentialsResponse } from '../../src/control/messages.ts';
import type { LostAnswerRetry } from '../../src/core/grants/login-end.ts';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { OtherClient } from '../support/other-client.ts';
import { kindInTurn, type PortalKind, type PortalTable, portalTable } from './portal-kinds.ts';

/** A grant at the portal. The user has the name of the appliance. */
export interface PortalGrant {
  readonly id: string;
  readonly user: string;
  readonly generation: number;
  readonly revoked: boolean;
}

/** A refresh token or a code that the token endpoint received, and its outcome. */
export interface SentCredential {
  readonly token: string;
  /** The id of the grant of a refresh token, which the emulator's tokens contain in clear text. */
  readonly grant: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The status of the portal's response, or null if it sent no complete response. */
  readonly status: number | null;
  /** The refresh token that the portal issued for it, whether its response arrived or not. */
  readonly successor: string | null;
  /** Whether it was sent to the token endpoint of the OAuth 2.0 authorization server. */
  readonly oauth2: boolean;
}

interface LoggedRequest {
  readonly time: string;
  readonly endpoint: string;
  readonly url: string;
  readonly form: Readonly<Record<string, string>>;
  readonly status: number | null;
  readonly answer: Readonly<Record<string, unknown>>;
  readonly number: number;
}

/** The portal of each appliance. */
type Assignment = ReadonlyMap<string, PortalTable>;

/** The hub's redirect URI has a port that is not known yet; devices may poll at once. */
const OAUTH2_FLAGS = ['--redirect-rule', 'https-or-localhost', '--device-interval', '1'];

/** Requests that may still be unfinished when the portal's log is read. */
const OVERLAP = 500;

/** The clouds with the most distinct interval allow one request in six seconds; here it is one in a second. */
const PACED: Omit<PortalTable, 'clientId'> = {
  name: 'paced',
  kind: 'configured',
  keys: ['min_request_interval = "1s"'],
};

interface HarnessOptions {
  /** The portals of the hub, one of each kind, which the appliances share in turn. Default: a helper portal. */
  readonly kinds?: readonly PortalKind[];
  /** Further users, whose appliances share a portal that allows one request in a second. */
  readonly paced?: readonly string[];
  /** More environment variables of the hub. */
  readonly env?: NodeJS.ProcessEnv;
}

/** The emulator and the hub, each in its own process. Each appliance has a user of the same name at the portal. */
export class ChaosHarness implements AsyncDisposable {
  readonly portal: EmulatorProcess;
  readonly hub: HubProcess;
  readonly #portals: Assignment;
  readonly #secret: string;
  /** The portal's requests, by number. */
  readonly #requests = new Map<number, LoggedRequest>();

  private constructor(portal: EmulatorProcess, hub: HubProcess, portals: Assignment, secret: string) {
    this.portal = portal;
    this.hub = hub;
    this.#portals = portals;
    this.#secret = secret;
  }

  /**
   * @param users one user for each appliance
   * @param flags of the emulator
   */
  static start(
    users: readonly string[],
    flags: readonly string[],
    { kinds = ['helper'], paced = [], env = {} }: HarnessOptions = {},
  ): Promise<ChaosHarness> {
    const tables = kinds.map((kind) => ({ name: kind, kind, clientId: randomUUID() }));
    const portals = tables.flatMap((table, turn) =>
      users.filter((_, index) => index % tables.length === turn).map((user): [string, PortalTable] => [user, table]),
    );
    const slow = { ...PACED, clientId: randomUUID() };
    return ChaosHarness.#launch(new Map([...portals, ...paced.map((user) => [user, slow] as const)]), flags, env);
  }

  /**
   * Starts a hub whose appliances each have their own portal with its own client, so that a fault can be for one of
   * them. The portals are of all kinds.
   * @param modes `retry_lost_answer` of each appliance's portal
   */
  static startWithSeparateClients(
    modes: ReadonlyMap<string, LostAnswerRetry>,
    flags: readonly string[],
  ): Promise<ChaosHarness> {
    const portals = [...modes].map(([name, mode], index): [string, PortalTable] => [
      name,
      { name, kind: kindInTurn(index), clientId: randomUUID(), keys: [`retry_lost_answer = "${mode}"`] },
    ]);
    return ChaosHarness.#launch(new Map(portals), flags);
  }

  static async #launch(
    portals: Assignment,
    flags: readonly string[],
    env: NodeJS.ProcessEnv = {},
  ): Promise<ChaosHarness> {
    const users = [...portals.keys()].flatMap((user) => ['--user', `${user}:${passwordOf(user)}`]);
    const tables = [...new Set(portals.values())];
    const secret = randomUUID();
    const clients = tables.flatMap(({ clientId }) => ['--client', `${clientId}:${secret}`]);
    await using parts = new AsyncDisposableStack();
    const portal = parts.use(
      await EmulatorProcess.start('--show-secrets', ...OAUTH2_FLAGS, ...users, ...clients, ...flags),
    );
    const toml = tables.map((table) => portalTable(portal, table)).join('\n');
    const hub = parts.use(await HubProcess.prepare({ toml, env }));
    await writeFile(join(hub.directory, 'portal.secret'), secret, { mode: 0o600 });
    await hub.launch();
    parts.move();
    return new ChaosHarness(portal, hub, portals, secret);
  }

  /** The client of the hub at an appliance's portal. */
  clientOf(name: string): string {
    return this.#portals.get(name)?.clientId ?? '';
  }

  /** Whether an appliance's portal is an OAuth 2.0 authorization server. */
  usesOAuth2(name: string): boolean {
    return (this.#portals.get(name)?.kind ?? 'helper') !== 'helper';
  }

  /** Adds a connection and an appliance of the same name, at the portal that is meant for it. */
  addAppliance(name: string): Promise<CredentialsResponse> {
    return this.hub.addAppliance(name, 'Monitoring', this.#portals.get(name)?.name ?? null);
  }

  /** Adds connections, each with an appliance of the same name and another one, and pairs them. */
  async pairAppliances(names: readonly string[]): Promise<CredentialsResponse[]> {
    const credentials = await Promise.all(
      names.map(async (name) => [
        await this.addAppliance(name),
        await this.hub.addAppliance(`${name}-2`, null, null, name),
      ]),
    );
    await Promise.all(names.map((name) => this.pair(name)));
    return credentials.flat();
  }

  /** Pairs a connection, even if it is already paired: its user logs in as in a browser, at a portal of any kind. */
  async pair(name: string): Promise<void> {
    await this.hub.ask(async (control) => {
      let opened = false;
      const { pairing } = await control.request('pair', { name });
      for await (const report of control.followPairing(pairing, new AbortController().signal)) {
        if (report.event === 'paired') return;
        if (report.event === 'failed') throw new Error(`${name} was not paired: ${report.message}`);
        if (report.event !== 'waiting' || opened) continue;
        opened = true;
        const form = new URLSearchParams({ username: name, password: passwordOf(name) });
        const page = await fetch(report.authorize_url, { method: 'POST', body: form });
        await page.text();
        if (!page.ok) throw new Error(`the login of ${name} got HTTP ${page.status}`);
      }
      throw new Error(`the pairing of ${name} did not end`);
    });
  }

  /** Another program with the same client has a login of the connection's user. @returns its refresh token */
  async logInElsewhere(name: string): Promise<string> {
    const { baseUrl, frontendUrl } = this.portal;
    const login = (of: { readonly state: string; readonly user: string }) => this.portal.login(of);
    const emulator = { baseUrl, frontendUrl, clientId: this.clientOf(name), clientSecret: this.#secret, login };
    return (await OtherClient.logIn(emulator, name)).refreshToken;
  }

  /** Imports a refresh token over the grant of a connection. */
  async importOver(name: string, refreshToken: string): Promise<void> {
    await this.hub.ask((control) =>
      control.request('importGrant', { name, refresh_token: refreshToken, replace: true }),
    );
  }

  /** The id of the grant at the portal whose access token the hub issues. */
  async grantInUse(name: string): Promise<string> {
    const { access_token } = await this.hub.ask((control) => control.request('token', { name }));
    return access_token.split('.')[0] ?? '';
  }

  /** Whether the newest refresh token of a grant was revoked. Unlike most portals, the emulator accepts any of them. */
  async isNewestRevoked(grantId: string): Promise<boolean> {
    const newest = (await this.grants()).find(({ id }) => id === grantId)?.generation;
    await this.collectRequests();
    return [...this.#requests.values()].some(
      ({ endpoint, form }) => endpoint === 'revoke' && form['token']?.startsWith(`${grantId}.${newest}.`),
    );
  }

  /** How often the faults of a kind were applied. */
  async hits(kind: string): Promise<number> {
    const { answer } = await this.portal.ask('GET', '/_emulator/faults');
    const { faults } = answer as { faults: { kind: string; hits: number }[] };
    return faults.reduce((sum, fault) => sum + (fault.kind === kind ? fault.hits : 0), 0);
  }

  /** The status of each connection. */
  async statuses(): Promise<readonly ConnectionResponse[]> {
    return (await this.hub.ask((control) => control.request('status'))).connections;
  }

  /** All grants at the portal. */
  async grants(): Promise<readonly PortalGrant[]> {
    const { answer } = await this.portal.ask('GET', '/_emulator/grants');
    return (answer as { grants: PortalGrant[] }).grants;
  }

  /** All credentials that the token endpoint has received. */
  async sends(grantType: 'refresh_token' | 'authorization_code'): Promise<readonly SentCredential[]> {
    await this.collectRequests();
    const key = grantType === 'refresh_token' ? 'refresh_token' : 'code';
    return [...this.#requests.values()]
      .filter(({ endpoint, form }) => endpoint === 'token' && form['grant_type'] === grantType)
      .map(({ form, time, status, answer, url }) => ({
        token: form[key] ?? '',
        grant: form[key]?.split('.')[0] ?? '',
        at: Date.parse(time),
        status,
        successor: typeof answer['refresh_token'] === 'string' ? answer['refresh_token'] : null,
        oauth2: url.startsWith('/oauth2/'),
      }));
  }

  /**
   * Reads new requests from the portal's log, and the results of those that were unfinished before. Call it often,
   * because the log is limited.
   */
  async collectRequests(): Promise<void> {
    const since = Math.max(0, Math.max(0, ...this.#requests.keys()) - OVERLAP);
    const { answer } = await this.portal.ask('GET', `/_emulator/requests?since=${since}`);
    for (const request of (answer as { requests: LoggedRequest[] }).requests)
      this.#requests.set(request.number, request);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.collectRequests();
    const secrets = [...this.#requests.values()].flatMap(({ answer }) =>
      ['access_token', 'refresh_token', 'code']
        .map((name) => answer[name])
        .filter((value) => typeof value === 'string'),
    );
    rememberSecrets(secrets);
    await this.hub[Symbol.asyncDispose]();
    await this.portal[Symbol.asyncDispose]();
  }
}

function passwordOf(user: string): string {
  return `password of ${user}`;
}

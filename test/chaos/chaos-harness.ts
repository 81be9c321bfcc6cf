import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConnectionResponse, CredentialsResponse } from '../../src/control/messages.ts';
import type { LostAnswerRetry } from '../../src/core/grants/retry-delays.ts';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

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
}

interface LoggedRequest {
  readonly time: string;
  readonly endpoint: string;
  readonly form: Readonly<Record<string, string>>;
  readonly status: number | null;
  readonly answer: Readonly<Record<string, unknown>>;
  readonly number: number;
}

/** Requests that may still be unfinished when the portal's log is read. */
const OVERLAP = 500;

/** The emulator and the hub, each in its own process. Each appliance has a user of the same name at the portal. */
export class ChaosHarness implements AsyncDisposable {
  readonly portal: EmulatorProcess;
  readonly hub: HubProcess;
  /** The id of each appliance's own client at the portal, by the appliance's name. */
  readonly clients: ReadonlyMap<string, string>;
  /** The portal's requests, by number. */
  readonly #requests = new Map<number, LoggedRequest>();

  private constructor(portal: EmulatorProcess, hub: HubProcess, clients: ReadonlyMap<string, string>) {
    this.portal = portal;
    this.hub = hub;
    this.clients = clients;
  }

  /**
   * @param users one user for each appliance
   * @param flags of the emulator
   */
  static async start(users: readonly string[], flags: readonly string[]): Promise<ChaosHarness> {
    await using parts = new AsyncDisposableStack();
    const portal = parts.use(await startPortal(users, flags));
    const hub = parts.use(await HubProcess.start({ emulator: portal }));
    parts.move();
    return new ChaosHarness(portal, hub, new Map());
  }

  /**
   * Starts a hub whose appliances each have their own client at the portal, so that a fault can be for one of them.
   * @param modes `retry_lost_answer` of each appliance's portal
   */
  static async startWithSeparateClients(
    modes: ReadonlyMap<string, LostAnswerRetry>,
    flags: readonly string[],
  ): Promise<ChaosHarness> {
    const clients = new Map([...modes.keys()].map((name) => [name, { id: randomUUID(), secret: `secret of ${name}` }]));
    const named = [...clients.values()].flatMap(({ id, secret }) => ['--client', `${id}:${secret}`]);
    await using parts = new AsyncDisposableStack();
    const portal = parts.use(await startPortal([...modes.keys()], [...named, ...flags]));
    const tables = [...clients].map(
      ([name, { id }]) => `[portals.${name}]
base_url = "${portal.baseUrl}"
frontend_url = "${portal.frontendUrl}"
client_id = "${id}"
client_secret_file = "${name}.secret"
retry_lost_answer = "${modes.get(name)}"`,
    );
    const hub = parts.use(await HubProcess.prepare({ toml: tables.join('\n') }));
    for (const [name, { secret }] of clients) {
      await writeFile(join(hub.directory, `${name}.secret`), secret, { mode: 0o600 });
    }
    await hub.launch();
    parts.move();
    return new ChaosHarness(portal, hub, new Map([...clients].map(([name, { id }]) => [name, id])));
  }

  /** Adds connections, each with an appliance of the same name and another one, and pairs them. */
  async pairAppliances(names: readonly string[]): Promise<CredentialsResponse[]> {
    const credentials = await Promise.all(
      names.map(async (name) => [
        await this.hub.addAppliance(name, 'Monitoring', this.clients.has(name) ? name : null),
        await this.hub.addAppliance(`${name}-2`, null, null, name),
      ]),
    );
    await Promise.all(names.map((name) => this.pair(name)));
    return credentials.flat();
  }

  /** Pairs a connection, even if it is already paired. */
  pair(name: string): Promise<void> {
    return this.hub.pair(name, this.portal, name);
  }

  /** The status of each connection. */
  async statuses(): Promise<readonly ConnectionResponse[]> {
    return (await this.hub.ask((control) => control.status())).connections;
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
      .map(({ form, time, status, answer }) => ({
        token: form[key] ?? '',
        grant: form[key]?.split('.')[0] ?? '',
        at: Date.parse(time),
        status,
        successor: typeof answer['refresh_token'] === 'string' ? answer['refresh_token'] : null,
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

function startPortal(users: readonly string[], flags: readonly string[]): Promise<EmulatorProcess> {
  const named = users.flatMap((user) => ['--user', `${user}:password of ${user}`]);
  return EmulatorProcess.start('--show-secrets', ...named, ...flags);
}

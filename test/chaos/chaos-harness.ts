import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApplianceResponse, CredentialsResponse } from '../../src/control/messages.ts';
import type { RetryLostAnswer } from '../../src/core/grants/retry-delays.ts';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';

/** A grant as the portal has it; the user has the name of the appliance that it is for. */
export interface PortalGrant {
  readonly id: string;
  readonly user: string;
  readonly generation: number;
  readonly revoked: boolean;
}

/** A refresh token or a code that came to the token endpoint, and what became of it. */
export interface SentCredential {
  readonly token: string;
  /** The id of the grant that a refresh token belongs to: the emulator's tokens say so in the clear. */
  readonly grant: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** What the portal answered, or null where no whole answer left it. */
  readonly status: number | null;
  /** The refresh token that the portal made for it, whether its answer arrived or not. */
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

/** Requests that may still be without an end when the portal's log is looked at. */
const OVERLAP = 500;

/** The emulator and the hub in a process each, and appliances that are users of the same name at the portal. */
export class ChaosHarness implements AsyncDisposable {
  readonly portal: EmulatorProcess;
  readonly hub: HubProcess;
  /** The client at the portal that is an appliance's own, by its name. */
  readonly clients: ReadonlyMap<string, string>;
  /** By their number. */
  readonly #requests = new Map<number, LoggedRequest>();

  private constructor(portal: EmulatorProcess, hub: HubProcess, clients: ReadonlyMap<string, string>) {
    this.portal = portal;
    this.hub = hub;
    this.clients = clients;
  }

  /**
   * @param users everybody who may have an appliance
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
   * A household in which every appliance has a client of its own at the portal, so that a fault can be for one of them.
   * @param modes each appliance with what the hub does after a lost answer
   */
  static async startWithSeparateClients(
    modes: ReadonlyMap<string, RetryLostAnswer>,
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

  /** Registers appliances and pairs them. */
  async pairAppliances(names: readonly string[]): Promise<CredentialsResponse[]> {
    const credentials = await Promise.all(
      names.map((name) => this.hub.addAppliance(name, 'Monitoring', this.clients.has(name) ? name : null)),
    );
    await Promise.all(names.map((name) => this.pair(name)));
    return credentials;
  }

  /** Pairs an appliance, which may be paired already. */
  pair(name: string): Promise<void> {
    return this.hub.pair(name, this.portal, name);
  }

  async statuses(): Promise<readonly ApplianceResponse[]> {
    return (await this.hub.ask((control) => control.status())).appliances;
  }

  /** Every grant that the portal gave. */
  async grants(): Promise<readonly PortalGrant[]> {
    const { answer } = await this.portal.ask('GET', '/_emulator/grants');
    return (answer as { grants: PortalGrant[] }).grants;
  }

  /** What came to the token endpoint so far: the portal's log is asked often enough that it forgets nothing. */
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

  /** Takes over what is new in the portal's log, and the end of what was being answered the last time. */
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

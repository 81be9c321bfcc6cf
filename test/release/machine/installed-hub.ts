import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { expect } from 'vitest';
import { type ControlClient, connectControlClient } from '../../../src/control/client.ts';
import type { ApplianceResponse, CredentialsResponse, StatusResponse } from '../../../src/control/messages.ts';
import { requestToken, runCurl } from '../../netns/hub-on-host.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { eventually, startPairing } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { type DebianSuite, Machine, type MachineResult, machineSkipReason } from '../../support/machine.ts';
import { createLan, type Host } from '../../support/netns.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { type DebPackage, PACKAGES_FOLDER } from './packages.ts';

const CLIENT = { id: '0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90', secret: 'the-emulated-portals-client-secret' };
const EMULATOR = 'http://127.0.0.1:8490';
export const CONFIGURATION_FILE = '/etc/latchkey/latchkey.toml';
export const SECRET_FILE = '/etc/latchkey/credentials/portal-home.secret';

export interface InstallOptions {
  /** Keys of the emulator's options file as TOML lines, such as `token_lifetime = "60s"`. */
  readonly emulator?: string;
  /** More TOML after the portal's section. */
  readonly toml?: string;
}

/**
 * Sets up a machine for all tests of a file. They are skipped if none can be booted. @param tools programs that they
 * need in addition
 */
export function setUpMachine(
  tools: readonly string[],
  make: (parts: AsyncDisposableStack) => Promise<void>,
  suite?: DebianSuite,
): void {
  setUpOnce(make, { skipReason: () => machineSkipReason(tools, suite && { suite }), timeout: scaleDeadline(120_000) });
}

/** A single line that matches, for `toMatchObject`. */
export function lineMatching(pattern: RegExp): unknown {
  return expect.stringMatching(new RegExp(`^[^\\n]*(${pattern.source})[^\\n]*\\n$`));
}

/**
 * A machine with the package installed and configured. The hub is not started; the portal is the emulator of the same
 * package, as a second service. On its LAN there are two other hosts, `peer` and `phone`.
 */
export class InstalledHub implements AsyncDisposable {
  readonly machine: Machine;
  readonly peer: Host;
  readonly phone: Host;
  /** The LAN's host that the machine runs on: its cable can be unplugged. */
  readonly host: Host;
  readonly #resources: AsyncDisposableStack;
  readonly #folder: string;

  private constructor(
    machine: Machine,
    hosts: Record<'hub' | 'peer' | 'phone', Host>,
    parts: AsyncDisposableStack,
    folder: string,
  ) {
    this.machine = machine;
    this.host = hosts.hub;
    this.peer = hosts.peer;
    this.phone = hosts.phone;
    this.#resources = parts;
    this.#folder = folder;
  }

  /** Boots a machine without the package. */
  static async boot(suite?: DebianSuite): Promise<InstalledHub> {
    await using parts = new AsyncDisposableStack();
    const { hosts } = parts.use(await createLan(['hub', 'peer', 'phone']));
    const folder = parts.use(stateFolder());
    // The folder of packages may not exist yet.
    await mkdir(PACKAGES_FOLDER, { recursive: true });
    const machine = parts.use(await Machine.boot(hosts.hub, PACKAGES_FOLDER, suite && { suite }));
    return new InstalledHub(machine, hosts, parts.move(), folder.path);
  }

  /** Boots a machine with the package installed and configured, and the emulator. */
  static async bootInstalled(debPackage: DebPackage, options: InstallOptions = {}): Promise<InstalledHub> {
    const hub = await InstalledHub.boot();
    try {
      await hub.install(debPackage, options);
      return hub;
    } catch (error) {
      await hub[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Installs the package, configures it, and starts the emulator. */
  async install(debPackage: DebPackage, options: InstallOptions = {}): Promise<void> {
    await this.installStopped(debPackage);
    await this.configure(options);
    await this.machine.sh('systemctl start latchkey-emulator');
  }

  /** Installs the first package, and ends the hub that it has started. @returns the output of the installation */
  async installStopped(debPackage: DebPackage): Promise<string> {
    const output = await this.machine.sh(`${this.installing(debPackage)} 2>&1`, { seconds: 90 });
    await this.machine.sh('systemctl stop latchkey && rm -rf /var/lib/private/latchkey/*');
    return output;
  }

  /** Installs a package, or updates to it. */
  async dpkg(debPackage: DebPackage): Promise<void> {
    await this.machine.sh(this.installing(debPackage), { seconds: 90 });
  }

  /** The command that installs a package. */
  installing({ path }: DebPackage): string {
    return `dpkg --install /mnt/${relative(PACKAGES_FOLDER, path)}`;
  }

  /** Writes the configuration, as an installer does. */
  async configure({ emulator = '', toml = '' }: InstallOptions = {}): Promise<void> {
    rememberSecrets([CLIENT.secret]);
    await this.machine.write(
      CONFIGURATION_FILE,
      configurationText({ baseUrl: EMULATOR, frontendUrl: 'http://127.0.0.1:8491', clientId: CLIENT.id }, '', toml),
    );
    await this.machine.write(SECRET_FILE, `${CLIENT.secret}\n`, '600');
    const options = ['port = 8490', 'frontend_port = 8491', `client = ["${CLIENT.id}:${CLIENT.secret}"]`, emulator];
    await this.machine.write('/etc/latchkey/emulator.toml', `${options.join('\n')}\n`);
  }

  async emulatorIsUp(): Promise<void> {
    await eventually(async () => (await this.machine.run(`curl -sf ${EMULATOR}/_emulator/grants`)).status === 0);
  }

  start(): Promise<string> {
    return this.machine.sh('systemctl start latchkey', { seconds: 30 });
  }

  /** Starts the hub, and pairs an appliance. */
  async startWith(name: string): Promise<CredentialsResponse> {
    await this.start();
    const credentials = await this.addAppliance(name);
    await this.pair(name);
    return credentials;
  }

  /** Runs the command line as root, or as another user. */
  latchkey(command: string, user = 'root'): Promise<MachineResult> {
    return this.machine.run(`runuser -u ${user} -- latchkey ${command}`);
  }

  /** Calls the daemon over its control socket, without a process for every command. */
  async ask<Result>(work: (control: ControlClient) => Promise<Result>): Promise<Result> {
    await using control = await connectControlClient([this.machine.path('/run/latchkey/control.sock')]);
    return await work(control);
  }

  status(): Promise<StatusResponse> {
    return this.ask((control) => control.request('status'));
  }

  /** The status of one appliance. */
  async appliance(name: string): Promise<ApplianceResponse> {
    const found = (await this.status()).appliances.find((appliance) => appliance.name === name);
    if (found === undefined) throw new Error(`there is no appliance ${name}`);
    return found;
  }

  async addAppliance(name: string): Promise<CredentialsResponse> {
    const credentials = await this.ask((control) => control.request('addAppliance', { name, scope: 'Monitoring' }));
    rememberSecrets([credentials.client_secret]);
    return credentials;
  }

  beginPairing(name: string): Promise<URL> {
    return this.ask((control) => startPairing(control, name));
  }

  /** A user logs in through the link, and the portal redirects the browser to the hub. @returns the hub's page */
  async logIn(authorizeUrl: URL): Promise<string> {
    const state = authorizeUrl.searchParams.get('state') ?? '';
    const { location } = await this.emulator<{ location: string }>('POST', 'login', { state, user: 'demo' });
    return this.machine.sh(`curl -sS --max-time 60 '${location}'`);
  }

  async pair(name: string): Promise<void> {
    const page = await this.logIn(await this.beginPairing(name));
    if (!page.includes('is connected')) throw new Error(`${name} was not paired: ${page}`);
  }

  /** Sends a request to the emulator's API. */
  async emulator<Answer>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: object): Promise<Answer> {
    const sent = body === undefined ? '' : `-H 'content-type: application/json' -d @-`;
    const command = `curl -sS --fail-with-body --max-time 60 -X ${method} ${sent} ${EMULATOR}/_emulator/${path}`;
    const text = await this.machine.sh(command, { input: body === undefined ? '' : JSON.stringify(body) });
    return (text === '' ? null : JSON.parse(text)) as Answer;
  }

  /** Calls `/api/whoami` with a token. @returns the HTTP status */
  async whoami(token: string): Promise<string> {
    const header = `authorization: Bearer ${token}`;
    return this.machine.sh(`curl -sS -o /dev/null -w '%{http_code}' -H @- ${EMULATOR}/api/whoami`, { input: header });
  }

  /** Requests a token with curl on another host, as an appliance does. @returns the hub's response */
  async token(credentials: CredentialsResponse): Promise<Readonly<Record<string, unknown>>> {
    const caFile = join(this.#folder, 'ca.pem');
    if (!existsSync(caFile))
      await writeFile(caFile, await runCurl(this.peer, [`http://${this.host.address}:8480/ca.pem`]));
    return requestToken(this.peer, { origin: `https://${this.host.address}:8443`, caFile }, credentials);
  }

  /**
   * The log entries of an event since the unit was started in this boot; with `since`, only those of its newest start.
   */
  async logged(event: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const lines = await this.machine.journal('latchkey');
    const entries = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));
    return entries.filter((entry) => entry.event === event);
  }

  /** Waits until the unit is in this state, 20 s at most. */
  async until(state: 'active' | 'inactive' | 'failed'): Promise<void> {
    await eventually(async () => (await this.machine.property('latchkey', 'ActiveState')) === state, 20);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

/** The portal's configuration, as an installer writes it. @param keys more of the portal's @param toml more sections */
export function configurationText(
  { baseUrl, frontendUrl, clientId }: { baseUrl: string; frontendUrl: string; clientId: string },
  keys = '',
  toml = '',
): string {
  const portal = [
    '[portals.home]',
    `base_url = "${baseUrl}"`,
    `frontend_url = "${frontendUrl}"`,
    `client_id = "${clientId}"`,
    'client_secret_file = "portal-home.secret"',
  ];
  return ['[hub]', 'name = "Cellar hub"', ...portal, keys, toml, ''].join('\n');
}

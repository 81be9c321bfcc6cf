import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { type ControlClient, connectControlClient } from '../../../src/control/client.ts';
import type { StatusResponse } from '../../../src/control/messages.ts';
import { PortalOnHost } from '../../netns/portal-on-host.ts';
import { eventually } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { type DebianSuite, Machine } from '../../support/machine.ts';
import { createLan, type Host } from '../../support/netns.ts';
import { stateFolder } from '../../support/state-folder.ts';
import { PACKAGES_FOLDER } from '../machine/packages.ts';
import { promptForNothing } from './documented-commands.ts';

/** The machines of docs/site.md, and their addresses there. */
const DOCUMENTED = {
  database: '192.168.1.10',
  cellar: '192.168.1.11',
  attic: '192.168.1.12',
  standby: '192.168.1.13',
} as const;
export type MachineName = keyof typeof DOCUMENTED;
const NAMES = Object.keys(DOCUMENTED) as MachineName[];

/** What the machines of the database, and no others, have in addition. */
export const DATABASE_PACKAGES = ['postgresql', 'iputils-arping', 'avahi-daemon', 'avahi-utils'];

/** A release of Debian, and the version of PostgreSQL that it has. */
export interface DebianRelease {
  readonly debian: string;
  readonly suite: DebianSuite;
  readonly postgresql: number;
}

const PORTAL_NAME = 'portal.test';
const USER_HOME = '/home/installer';

/** The machines of a site, and a portal on their LAN. Nothing is configured yet. */
export class SiteMachines implements AsyncDisposable {
  readonly machines: Readonly<Record<MachineName, Machine>>;
  readonly hosts: Readonly<Record<MachineName | 'peer', Host>>;
  readonly portal: PortalOnHost;
  /** An empty folder of this machine. */
  readonly folder: string;
  readonly #portalCa: string;
  readonly #release: DebianRelease;
  readonly #resources: AsyncDisposableStack;

  private constructor(
    parts: Pick<SiteMachines, 'machines' | 'hosts' | 'portal' | 'folder'> & {
      readonly portalCa: string;
      readonly release: DebianRelease;
    },
    resources: AsyncDisposableStack,
  ) {
    this.machines = parts.machines;
    this.hosts = parts.hosts;
    this.portal = parts.portal;
    this.folder = parts.folder;
    this.#portalCa = parts.portalCa;
    this.#release = parts.release;
    this.#resources = resources;
  }

  /** Boots them. */
  static async boot(release: DebianRelease): Promise<SiteMachines> {
    await using parts = new AsyncDisposableStack();
    const { path: folder } = parts.use(stateFolder());
    const { hosts } = parts.use(await createLan(['peer', ...NAMES]));
    const boot = async (name: MachineName) => {
      const isHub = name === 'cellar' || name === 'attic';
      const machine = parts.use(
        await Machine.boot(hosts[name], PACKAGES_FOLDER, {
          suite: release.suite,
          packages: isHub ? [] : DATABASE_PACKAGES,
        }),
      );
      await promptForNothing(machine);
      await machine.sh(`mkdir -p ${USER_HOME}; echo '${hosts.peer.address} ${PORTAL_NAME}' >>/etc/hosts`);
      return machine;
    };
    const caFile = join(folder, 'portal-ca.pem');
    const startPortal = async () =>
      parts.use(await PortalOnHost.startNamed(hosts.peer, PORTAL_NAME, { caFile, tokenLifetime: 3600 }));
    const [portal, ...booted] = await Promise.all([startPortal(), ...NAMES.map(boot)] as const);
    const machines = Object.fromEntries(NAMES.map((name, index) => [name, booted[index]])) as Record<
      MachineName,
      Machine
    >;
    const portalCa = readFileSync(caFile, 'utf8');
    return new SiteMachines({ machines, hosts, portal, folder, portalCa, release }, parts.move());
  }

  /** A text of docs/site.md with the addresses of these machines, and their version of PostgreSQL as it says. */
  localize(text: string): string {
    const local = NAMES.reduce((found, name) => found.replaceAll(DOCUMENTED[name], this.hosts[name].address), text);
    return local
      .replaceAll('192.168.1.0/24', '10.77.0.0/24')
      .replaceAll(/(postgresql@|\/|pg_ctlcluster )15(?=-main|\/| )/g, `$1${this.#release.postgresql}`);
  }

  /** A text of these machines with the addresses of docs/site.md. */
  document(text: string): string {
    return NAMES.reduce(
      (found, name) => found.replaceAll(new RegExp(`\\b${this.hosts[name].address}\\b`, 'g'), DOCUMENTED[name]),
      text,
    );
  }

  /** Types a documented block on a machine. @param input is pasted, or typed. @returns its output */
  type(name: MachineName, block = '', input = ''): Promise<string> {
    const typed = this.localize(block).replace(/latchkey backup \S+/g, '$& --passphrase-file ../passphrase');
    return this.machines[name].sh(`set -e; cd ${USER_HOME}; [ ! -d work ] || cd work\n${typed}`, {
      seconds: 60,
      input,
    });
  }

  /** Puts a package and a passphrase where the documented commands expect them. */
  async providePackage(name: MachineName, path: string): Promise<void> {
    const machine = this.machines[name];
    await machine.write(`${USER_HOME}/passphrase`, 'twelve characters and more\n', '600');
    await machine.sh(
      `rm -rf ${USER_HOME}/work; mkdir ${USER_HOME}/work; ln -s /mnt/${relative(PACKAGES_FOLDER, path)} ${USER_HOME}/work/`,
    );
  }

  /** Configures the portal of a hub, as docs/deploy.md describes it. @param toml what docs/site.md adds */
  async configure(name: MachineName, toml: string): Promise<void> {
    const { baseUrl, frontendUrl, clientId, clientSecret } = this.portal;
    const machine = this.machines[name];
    const portal = { base_url: baseUrl, frontend_url: frontendUrl, client_id: clientId };
    const keys = { ...portal, client_secret_file: 'portal-home.secret', ca_file: 'portal-ca.pem' };
    const lines = Object.entries(keys).map(([key, value]) => `${key} = "${value}"`);
    await machine.write('/etc/latchkey/latchkey.toml', `${toml}\n[portals.home]\n${lines.join('\n')}\n`);
    await machine.write('/etc/latchkey/portal-ca.pem', this.#portalCa);
    await machine.write('/etc/latchkey/credentials/portal-home.secret', `${clientSecret}\n`, '600');
  }

  /** Calls the daemon of a machine over its control socket, without a process for every command. */
  async ask<Result>(name: MachineName, work: (control: ControlClient) => Promise<Result>): Promise<Result> {
    await using control = await connectControlClient([this.machines[name].path('/run/latchkey/control.sock')]);
    return await work(control);
  }

  status(name: MachineName): Promise<StatusResponse> {
    return this.ask(name, (control) => control.request('status'));
  }

  /** Waits until a hub has refreshed the appliance's connection. @param seconds see {@link eventually} */
  async untilRefreshed(name: MachineName, seconds: number): Promise<void> {
    const refresh = () => this.ask(name, (control) => control.request('refresh', { name: 'wallbox' }));
    await eventually(
      () =>
        refresh().then(
          ({ state }) => state === 'active',
          () => false,
        ),
      seconds,
      500,
    );
  }

  /** Runs documented commands of an appliance's developer on another host of the LAN. @returns their output */
  async typeElsewhere(variables: string, block = ''): Promise<string> {
    const script = `set -e; cd ${this.folder}; export ${variables}\n${this.localize(block)}`;
    const output = await this.hosts.peer.run('/bin/sh', ['-c', script], { env: { PATH: '/usr/bin:/bin' } });
    const token = JSON.parse(output) as { readonly access_token?: string };
    rememberSecrets(token.access_token === undefined ? [] : [token.access_token]);
    return output;
  }

  /** Gives the address of a machine, which keeps the others that it has, to another machine that is unplugged. */
  async moveAddress(from: MachineName, to: MachineName): Promise<void> {
    const move = (action: string, host: Host, address: string) =>
      host.run('ip', ['address', action, `${address}/24`, 'dev', 'eth0']);
    // Otherwise the kernel would delete the addresses that were added later, too.
    await this.hosts[from].run('sysctl', ['-qw', 'net.ipv4.conf.eth0.promote_secondaries=1']);
    await move('del', this.hosts[from], this.hosts[from].address);
    await move('del', this.hosts[to], this.hosts[to].address);
    await move('add', this.hosts[to], this.hosts[from].address);
  }

  /** Switches a machine off, as if somebody had pulled its plug. */
  async cutPower(name: MachineName): Promise<void> {
    // Its addresses outlive it.
    await this.hosts[name].plug('down');
    await this.machines[name][Symbol.asyncDispose]();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync();
  }
}

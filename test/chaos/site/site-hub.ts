import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { HubProcess } from '../../support/hub-process.ts';
import type { Host } from '../../support/netns.ts';
import { isRunning } from '../../support/processes.ts';
import type { Fault, FaultKind, FaultLog } from './fault-log.ts';

/** What all hubs of a site have in common. */
export interface SiteConfiguration {
  /** The `postgresql:` URL of the database. */
  readonly databaseUrl: string;
  /** 32 bytes as base64url. */
  readonly storeKey: string;
  /** The tables of the portals as TOML, without the parameter that names the hub. */
  readonly portals: readonly string[];
  readonly portalSecret: string;
}

/** A hub of a site on a host of a test's network, with the faults that it can suffer. */
export class SiteHub implements AsyncDisposable {
  readonly name: string;
  readonly host: Host;
  readonly process: HubProcess;
  /** The log of each run of the daemon. */
  readonly logs: string[] = [];
  readonly #faults: FaultLog;
  #endDown = () => {};

  private constructor(name: string, host: Host, process: HubProcess, faults: FaultLog) {
    this.name = name;
    this.host = host;
    this.process = process;
    this.#faults = faults;
  }

  /** Writes the configuration of a hub. The portal sees its name in each request to the token endpoint. */
  static async prepare(name: string, host: Host, site: SiteConfiguration, faults: FaultLog): Promise<SiteHub> {
    const process = await HubProcess.prepare({
      within: ['/usr/sbin/ip', 'netns', 'exec', host.namespace],
      toml: [
        ...site.portals.map((table) => `${table}\ntoken_params = { hub = "${name}" }`),
        '[store]\npostgres_file = "postgres.url"\n',
      ].join('\n'),
      env: {
        LATCHKEY_HUB_NAME: name,
        LATCHKEY_LAN_ADDRESS: host.address,
        LATCHKEY_LAN_LISTEN: host.address,
      },
    });
    const secret = { mode: 0o600 };
    await writeFile(join(process.directory, 'postgres.url'), site.databaseUrl, secret);
    await writeFile(join(process.directory, 'portal.secret'), site.portalSecret, secret);
    await writeFile(join(process.directory, 'state/store.key'), `${site.storeKey}\n`, secret);
    const blocked = 'add set inet faults peers { type ipv4_addr; }';
    const chain = (name: string) => `add chain inet faults ${name} { type filter hook ${name} priority 0; }`;
    const rules = 'add rule inet faults output ip daddr @peers drop; add rule inet faults input ip saddr @peers drop';
    const table = `add table inet faults; ${blocked}; ${chain('input')}; ${chain('output')}; ${rules}`;
    await host.run('/usr/sbin/nft', [table]);
    return new SiteHub(name, host, process, faults);
  }

  /** Where appliances ask. */
  get origin(): string {
    return `https://${this.host.address}:${this.process.httpsPort}`;
  }

  /** Whether its daemon runs, even if it is paused or still starting. */
  get isUp(): boolean {
    return isRunning(this.process.pid);
  }

  async launch(): Promise<void> {
    this.#endDown();
    const launched = this.process.launch();
    this.logs.push(this.process.log);
    await launched;
  }

  /** The times in which the hub, by its own log, had no database: until it had one again, or was started again. */
  get outages(): Fault[] {
    const log = this.logs.map((file) => readFileSync(file, 'utf8')).join('');
    const lines = log.matchAll(/"time":"([^"]+)".*"event":"(database_unavailable|database_available|hub_started)"/g);
    const events = [...lines].map(([, time = '', event]) => ({ at: Date.parse(time), event }));
    return events.flatMap(({ at: from, event }, index) => {
      const to = events[index + 1]?.at ?? Number.POSITIVE_INFINITY;
      return event === 'database_unavailable' ? [{ kind: 'database_away', hub: this.name, from, to }] : [];
    });
  }

  /** Kills the daemon. @returns call it when it has been started again */
  async kill(): Promise<() => void> {
    const end = this.#faults.begin('killed', this.name);
    this.#endDown = this.#faults.begin('down', this.name);
    await this.process.kill('SIGKILL');
    return end;
  }

  /** Stops the daemon's process. @returns resumes it */
  pause(): () => void {
    const { pid } = this.process;
    const end = this.#faults.begin('paused', this.name);
    process.kill(pid, 'SIGSTOP');
    return () => {
      process.kill(pid, 'SIGCONT');
      end();
    };
  }

  /** Drops all packets between the hub and these addresses. @returns ends it */
  async cut(kind: FaultKind, addresses: readonly string[]): Promise<() => Promise<void>> {
    const elements = `inet faults peers { ${addresses.join(', ')} }`;
    const end = this.#faults.begin(kind, this.name);
    await this.host.run('/usr/sbin/nft', [`add element ${elements}`]);
    return async () => {
      await this.host.run('/usr/sbin/nft', [`delete element ${elements}`]);
      end();
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A paused process ignores all other signals.
    if (this.isUp) process.kill(this.process.pid, 'SIGCONT');
    await this.process[Symbol.asyncDispose]();
  }
}

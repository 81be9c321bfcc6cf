import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { createLan, type Host, type Process, whyNoLan } from '../support/netns.ts';
import { MAIN } from '../support/program.ts';
import type { Finding, Scale } from './experiment.ts';

/** What the portal is called. */
const NAME = 'portal.test';
const PORTS = ['--port', '8001', '--frontend-port', '8002'];
/** Of access tokens, in seconds. */
const LIFETIME = 8;
/** A connection that nobody answers is given up after this, in seconds: it may have been begun just before the end. */
const CONNECT = 10;
/** What a busy machine may be late with, in seconds. */
const LATE = 3;
const APPLIANCES = ['wallbox', 'heater', 'inverter'];

/** A way to cut a hub off, and to mend it. */
interface Cut {
  readonly name: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** A real hub and its portal on hosts of their own; the way between them is cut for several lifetimes of its tokens. */
export async function cutOff({ long, progress, signal }: Scale): Promise<Finding> {
  const reason = await whyNoLan(['/usr/sbin/nft', '/usr/bin/curl', '/usr/bin/unshare']);
  if (reason !== null) return { figures: { 'cut off: left out': reason }, broken: [] };
  await using lan = await createLan(['hub', 'portal']);
  using folder = {
    path: mkdtempSync(join(tmpdir(), 'latchkey-cut-')),
    [Symbol.dispose]: () => rmSync(folder.path, { recursive: true }),
  };
  const portal = new PortalHost(lan.hosts.portal, folder.path);
  const hosts = join(folder.path, 'hosts');
  const known = `127.0.0.1 localhost\n${lan.hosts.portal.address} ${NAME}\n`;
  writeFileSync(hosts, known);
  writeFileSync(join(folder.path, 'known'), known);
  const started = await portal.start('mine');
  const within = knowing(hosts, lan.hosts.hub, folder.path);
  await using hub = await HubProcess.start({ emulator: started, portal: `ca_file = "${portal.caFile}"`, within });
  for (const name of APPLIANCES) await pair(hub, lan.hosts.hub, name);

  const nft = (...rule: string[]) => lan.hosts.hub.run('/usr/sbin/nft', rule);
  await nft('add table inet cut; add chain inet cut out { type filter hook output priority 0; }');
  const cuts: readonly Cut[] = [
    {
      name: 'black hole',
      begin: async () => void (await nft('add rule inet cut out tcp dport { 8001, 8002 } drop')),
      end: async () => void (await nft('flush chain inet cut out')),
    },
    {
      name: 'name unknown',
      begin: async () => writeFileSync(hosts, '127.0.0.1 localhost\n'),
      end: async () => writeFileSync(hosts, known),
    },
    { name: 'refused', begin: () => portal.stop(), end: async () => void (await portal.start('mine')) },
    {
      name: 'another certificate',
      async begin() {
        await portal.stop();
        await portal.start('another');
      },
      async end() {
        await portal.stop();
        await portal.start('mine');
      },
    },
    { name: '503', begin: () => portal.fail({ status: 503 }), end: () => portal.mend() },
  ];
  const figures: Record<string, string | number> = {};
  const broken: string[] = [];
  for (const { name, begin, end } of long ? cuts : cuts.slice(0, 2)) {
    if (signal.aborted) break;
    await rememberTokens(hub);
    await begin();
    if (long) await sleep(60_000);
    const named = async () =>
      (await statusOf(hub)).every(({ state, problem }) => state === 'retrying' && problem !== null);
    await eventually(named, LIFETIME + CONNECT + LATE).catch(() => undefined);
    const problems = await statusOf(hub);
    const codes = [...new Set(problems.map(({ problem }) => problem?.code))];
    if (!(await named()))
      broken.push(`cut off (${name}) status said ${JSON.stringify(problems.map(({ state }) => state))}`);
    await end();
    const since = performance.now();
    const limit = LIFETIME + CONNECT + LATE;
    await eventually(
      async () => (await statusOf(hub)).every(({ state, expires_in }) => state === 'active' && (expires_in ?? 0) > 0),
      limit,
    ).catch(() => broken.push(`cut off (${name}) not every grant was fresh within ${limit} s of the end`));
    const after = Math.round((performance.now() - since) / 100) / 10;
    figures[`cut off (${name}): all fresh after, s`] = after;
    progress(`cut off (${name}): ${codes.join(', ')}; all fresh ${after} s after the end`);
  }
  await rememberTokens(hub);
  return { figures, broken };
}

/** What runs a hub on a host that knows no other names than those of a file. @param folder for what it needs beside */
function knowing(hosts: string, host: Host, folder: string): readonly string[] {
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n');
  const mounts = [`mount --bind ${hosts} /etc/hosts`, `mount --bind ${folder}/resolv.conf /etc/resolv.conf`];
  return ['/usr/sbin/ip', 'netns', 'exec', host.namespace, 'sh', '-c', `${mounts.join(' && ')} && exec "$@"`, 'sh'];
}

function statusOf(hub: HubProcess) {
  return hub.ask(async (control) => (await control.status()).appliances);
}

/** Every token of now: there may be none. */
async function rememberTokens(hub: HubProcess): Promise<void> {
  await hub.ask(async (control) => {
    for (const name of APPLIANCES) {
      const token = await control.token(name).catch(() => null);
      if (token !== null) rememberSecrets([token.access_token]);
    }
  });
}

/** The hub's own host is where the browser runs: the emulator logs in by itself, and the code comes by redirect. */
async function pair(hub: HubProcess, host: Host, name: string): Promise<void> {
  const { client_secret } = await hub.ask((control) => control.addAppliance(name, null, null));
  rememberSecrets([client_secret]);
  await hub.ask((control) => control.pair(name));
  const { authorize_url = '' } = await eventually(async () => {
    const found = (await statusOf(hub)).find((one) => one.name === name);
    return found?.authorize_url !== undefined && found;
  });
  const page = await host.run('/usr/bin/curl', [
    '-ksL',
    '--resolve',
    `${NAME}:8001:10.77.0.2`,
    '--resolve',
    `${NAME}:8002:10.77.0.2`,
    authorize_url,
  ]);
  if (!page.includes('is connected')) throw new Error(`${name} was not paired`);
}

interface Addresses {
  readonly baseUrl: string;
  readonly frontendUrl: string;
  readonly clientId: string;
  readonly clientSecret: string;
}

/** The emulator on a host of its own. What it gave out outlives a stop. */
class PortalHost {
  readonly #host: Host;
  readonly #folder: string;
  readonly #client = ['--client', '9d3ba4de-5a0c-4c0f-9ae0-3d2c0f6b1a77:the-secret-of-this-client'];
  #process: Process | null = null;

  constructor(host: Host, folder: string) {
    this.#host = host;
    this.#folder = folder;
  }

  /** Its own name is known to it, whatever others know. */
  get #named(): readonly string[] {
    return ['-c', `mount --bind ${this.#folder}/known /etc/hosts && exec "$@"`, 'sh'];
  }

  get caFile(): string {
    return join(this.#folder, 'mine.pem');
  }

  /** @param authority whose certificate it shows: each has its own CA */
  async start(authority: 'mine' | 'another'): Promise<Addresses> {
    const files = [
      '--state',
      join(this.#folder, `${authority}.state`),
      '--ca-file',
      join(this.#folder, `${authority}.pem`),
    ];
    const flags = ['--json', '--tls', '--host', NAME, ...PORTS, ...files, ...this.#client];
    const behaviour = ['--auto-login', '--token-lifetime', `${LIFETIME}s`, '--refresh-grace', '1'];
    const process_ = this.#host.spawn('sh', [
      ...this.#named,
      process.execPath,
      MAIN,
      'emulator',
      ...flags,
      ...behaviour,
    ]);
    this.#process = process_;
    const said = await process_.line((line) => (line.startsWith('{') ? line : undefined), 20_000);
    const { base_url, frontend_url, client_id, client_secret } = JSON.parse(said) as Record<string, string>;
    return {
      baseUrl: base_url ?? '',
      frontendUrl: frontend_url ?? '',
      clientId: client_id ?? '',
      clientSecret: client_secret ?? '',
    };
  }

  async stop(): Promise<void> {
    await this.#process?.stop('SIGKILL');
  }

  async fail({ status }: { readonly status: number }): Promise<void> {
    await this.#api('POST', { kind: 'status', endpoint: 'token', status, times: null });
  }

  async mend(): Promise<void> {
    await this.#api('DELETE');
  }

  async #api(method: string, body: unknown = {}): Promise<void> {
    const url = `https://${this.#host.address}:8001/_emulator/faults`;
    const json = ['-H', 'content-type: application/json', '-d', JSON.stringify(body)];
    await this.#host.run('/usr/bin/curl', ['-ksf', '-X', method, ...json, url]);
  }
}

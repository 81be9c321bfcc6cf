import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EmulatorOptions } from '../../src/emulator/index.ts';
import { runCurl } from '../netns/hub-on-host.ts';
import { PortalOnHost } from '../netns/portal-on-host.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { createLan, type Host, lanSkipReason } from '../support/netns.ts';
import { stateFolder } from '../support/state-folder.ts';
import type { ExperimentOptions, ExperimentResult } from './experiment.ts';

/** What the portal is called. */
const NAME = 'portal.test';
/** Of access tokens, in seconds. */
const LIFETIME = 8;
/** A connection that nobody answers is given up after this, in seconds: it may have been begun just before the end. */
const CONNECT = 10;
/** What a busy machine may be late with, in seconds. */
const LATE = 3;
const PORTAL: EmulatorOptions = {
  port: 8001,
  frontendPort: 8002,
  clients: [{ id: '9d3ba4de-5a0c-4c0f-9ae0-3d2c0f6b1a77', secret: 'the-secret-of-this-client' }],
  autoLogin: true,
  tokenLifetime: LIFETIME,
  refreshGrace: 1,
};
const UNAVAILABLE = { kind: 'status', endpoint: 'token', status: 503, times: null };
const APPLIANCES = ['wallbox', 'heater', 'inverter'];

/** A way to cut a hub off, and to mend it. */
interface Cut {
  readonly name: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** A real hub and its portal on hosts of their own; the way between them is cut for several lifetimes of its tokens. */
export async function runNetworkPartition({ long, progress, signal }: ExperimentOptions): Promise<ExperimentResult> {
  const reason = await lanSkipReason(['/usr/sbin/nft', '/usr/bin/curl', '/usr/bin/unshare']);
  if (reason !== null) return { figures: { 'cut off: left out': reason }, broken: [] };
  await using lan = await createLan(['hub', 'portal']);
  using folder = stateFolder();
  const hosts = join(folder.path, 'hosts');
  const known = `127.0.0.1 localhost\n${lan.hosts.portal.address} ${NAME}\n`;
  writeFileSync(hosts, known);
  /** What it gave out outlives a stop. @param authority whose certificate it shows: each has its own CA */
  const start = (authority: 'mine' | 'another') =>
    PortalOnHost.startNamed(lan.hosts.portal, NAME, {
      ...PORTAL,
      state: join(folder.path, `${authority}.state`),
      caFile: join(folder.path, `${authority}.pem`),
    });
  let portal = await start('mine');
  const startAnew = async (authority: 'mine' | 'another') => {
    await portal[Symbol.asyncDispose]();
    portal = await start(authority);
  };
  const within = knowing(hosts, lan.hosts.hub, folder.path);
  await using hub = await HubProcess.start({
    emulator: portal,
    portal: `ca_file = "${join(folder.path, 'mine.pem')}"`,
    within,
  });
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
    { name: 'refused', begin: () => portal[Symbol.asyncDispose](), end: () => startAnew('mine') },
    { name: 'another certificate', begin: () => startAnew('another'), end: () => startAnew('mine') },
    {
      name: '503',
      begin: async () => void (await portal.sendCommand('POST', 'faults', UNAVAILABLE)),
      end: async () => void (await portal.sendCommand('DELETE', 'faults')),
    },
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

async function statusOf(hub: HubProcess) {
  return (await hub.status()).appliances;
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
  await hub.addAppliance(name);
  const resolve = ['8001', '8002'].flatMap((port) => ['--resolve', `${NAME}:${port}:10.77.0.2`]);
  const page = await runCurl(host, ['--insecure', '--location', ...resolve, (await hub.beginPairing(name)).href]);
  if (!page.includes('is connected')) throw new Error(`${name} was not paired`);
}

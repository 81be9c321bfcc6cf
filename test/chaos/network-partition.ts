import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
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
import { kindInTurn, PORTAL_KINDS, type PortalKind, portalTable } from './portal-kinds.ts';

/** The portal's host name. */
const NAME = 'portal.test';
/** The lifetime of access tokens, in seconds. */
const LIFETIME = 8;
/** The hub's connect timeout, in seconds: a connection may have begun just before the end of the outage. */
const CONNECT = 10;
/** A margin for a busy machine, in seconds. */
const LATE = 3;
/** The portals of the hub, with a client of each. */
const PORTALS = PORTAL_KINDS.map((kind) => ({ name: kind, kind, clientId: randomUUID() }));
const PORTAL: EmulatorOptions = {
  port: 8001,
  frontendPort: 8002,
  clients: PORTALS.map(({ clientId }) => ({ id: clientId, secret: 'the-secret-of-these-clients' })),
  redirectRule: 'any',
  autoLogin: true,
  tokenLifetime: LIFETIME,
  refreshGrace: 1,
};
const UNAVAILABLE = { kind: 'status', endpoint: 'token', status: 503, times: null };
/** The appliances, each at a portal of another kind. */
const APPLIANCES = ['wallbox', 'heater', 'inverter'];

/** A way to cut a hub off from the portal, and to restore the connection. */
interface Cut {
  readonly name: string;
  begin(): Promise<void>;
  end(): Promise<void>;
}

/** Cuts a real hub off from its portals, of all kinds, for several token lifetimes. Hub and emulator run in their own network namespaces. */
export async function runNetworkPartition({ long, progress, signal }: ExperimentOptions): Promise<ExperimentResult> {
  const reason = await lanSkipReason(['/usr/sbin/nft', '/usr/bin/curl', '/usr/bin/unshare']);
  if (reason !== null) return { figures: { 'cut off: skipped': reason }, broken: [] };
  await using lan = await createLan(['hub', 'portal']);
  using folder = stateFolder();
  const hosts = join(folder.path, 'hosts');
  const known = `127.0.0.1 localhost\n${lan.hosts.portal.address} ${NAME}\n`;
  writeFileSync(hosts, known);
  /** Starts the portal; its grants survive a stop. @param authority the CA of its certificate, one for each name */
  const start = (authority: 'mine' | 'another') =>
    PortalOnHost.startNamed(lan.hosts.portal, NAME, {
      ...PORTAL,
      state: join(folder.path, `${authority}.state`),
      caFile: join(folder.path, `${authority}.pem`),
    });
  let portal = await start('mine');
  const restart = async (authority: 'mine' | 'another') => {
    await portal[Symbol.asyncDispose]();
    portal = await start(authority);
  };
  const within = withHostsFile(hosts, lan.hosts.hub, folder.path);
  const tables = PORTALS.map((table) => {
    // curl logs in as a browser, so the portal with a device endpoint redirects as well.
    const login = table.kind === 'discovered' ? ['login = "redirect"'] : [];
    return portalTable(portal, { ...table, keys: [`ca_file = "${join(folder.path, 'mine.pem')}"`, ...login] });
  });
  await using hub = await HubProcess.prepare({ toml: tables.join('\n'), within });
  await writeFile(join(hub.directory, 'portal.secret'), portal.clientSecret, { mode: 0o600 });
  await hub.launch();
  for (const [index, name] of APPLIANCES.entries()) await pair(hub, lan.hosts.hub, name, kindInTurn(index));

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
    { name: 'refused', begin: () => portal[Symbol.asyncDispose](), end: () => restart('mine') },
    { name: 'another certificate', begin: () => restart('another'), end: () => restart('mine') },
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
    const reported = async () =>
      (await statusOf(hub)).every(({ state, problem }) => state === 'retrying' && problem !== null);
    await eventually(reported, LIFETIME + CONNECT + LATE).catch(() => undefined);
    const problems = await statusOf(hub);
    const codes = [...new Set(problems.map(({ problem }) => problem?.code))];
    if (!(await reported()))
      broken.push(`cut off (${name}): status reports ${JSON.stringify(problems.map(({ state }) => state))}`);
    await end();
    const since = performance.now();
    const limit = LIFETIME + CONNECT + LATE;
    await eventually(
      async () => (await statusOf(hub)).every(({ state, expires_in }) => state === 'active' && (expires_in ?? 0) > 0),
      limit,
    ).catch(() => broken.push(`cut off (${name}): not every grant was fresh within ${limit} s of the end`));
    const after = Math.round((performance.now() - since) / 100) / 10;
    figures[`cut off (${name}): all fresh after, s`] = after;
    progress(`cut off (${name}): ${codes.join(', ')}; all fresh ${after} s after the end`);
  }
  await rememberTokens(hub);
  return { figures, broken };
}

/**
 * A command that runs a hub on a host that resolves only the names of a hosts file.
 * @param folder for a temporary file
 */
function withHostsFile(hosts: string, host: Host, folder: string): readonly string[] {
  writeFileSync(join(folder, 'resolv.conf'), 'nameserver 127.0.0.1\n');
  const mounts = [`mount --bind ${hosts} /etc/hosts`, `mount --bind ${folder}/resolv.conf /etc/resolv.conf`];
  return ['/usr/sbin/ip', 'netns', 'exec', host.namespace, 'sh', '-c', `${mounts.join(' && ')} && exec "$@"`, 'sh'];
}

async function statusOf(hub: HubProcess) {
  return (await hub.status()).appliances;
}

/** Remembers the current tokens, if there are any, for the search for leaked secrets. */
async function rememberTokens(hub: HubProcess): Promise<void> {
  await hub.ask(async (control) => {
    for (const name of APPLIANCES) {
      const token = await control.request('token', { name }).catch(() => null);
      if (token !== null) rememberSecrets([token.access_token]);
    }
  });
}

/**
 * Pairs with curl as the browser on the hub's own host: the emulator logs in automatically, and the code comes by
 * redirect.
 */
async function pair(hub: HubProcess, host: Host, name: string, portal: PortalKind): Promise<void> {
  await hub.addAppliance(name, null, portal);
  const resolve = ['8001', '8002'].flatMap((port) => ['--resolve', `${NAME}:${port}:10.77.0.2`]);
  const page = await runCurl(host, ['--insecure', '--location', ...resolve, (await hub.beginPairing(name)).href]);
  if (!page.includes('is connected')) throw new Error(`${name} was not paired`);
}

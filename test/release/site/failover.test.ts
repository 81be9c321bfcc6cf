import { existsSync } from 'node:fs';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChaosSite } from '../../chaos/site/chaos-site.ts';
import type { SiteHub } from '../../chaos/site/site-hub.ts';
import { CLIENT_MATRIX, type ClientName } from '../../lan/clients/matrix.ts';
import { ClientPrograms, missingPackages } from '../../lan/clients/programs.ts';
import { copyStoreKey, prepareSiteHub } from '../../site/site-hubs.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import type { HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { lanSkipReason } from '../../support/netns.ts';
import { startPortal } from '../../support/portal.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(postgresSkipReason);

const SCOPE = 'Monitoring RemoteControl';
const PYTHON_PACKAGES = '/usr/lib/python3/dist-packages';
skipIfUnavailable(async () => {
  const missing = ['zeroconf', 'requests_oauthlib'].find((name) => !existsSync(join(PYTHON_PACKAGES, name)));
  return missing === undefined ? lanSkipReason(['/usr/bin/python3', '/usr/sbin/nft']) : `python3-${missing} is missing`;
});

/** How soon an appliance that follows mDNS has a token from another hub, in ms on a quiet machine. */
const MDNS_FAILOVER = 5000;

test('an appliance with a stock OAuth library and the addresses of two hubs gets the same token with one request to the other when one is killed', async () => {
  await using parts = new AsyncDisposableStack();
  const emulator = parts.use(await startPortal());
  const server = parts.use(await startPostgres());
  const database = await server.createDatabase();
  const attic = parts.use(await prepareSiteHub(database, 'attic', { emulator }));
  await attic.launch();
  const cellar = parts.use(await prepareSiteHub(database, 'cellar', { emulator }));
  await copyStoreKey(attic, cellar);
  await cellar.launch();
  const heater = await attic.addAppliance('heater', SCOPE);
  await attic.pair('heater', emulator);
  const folder = parts.use(await mkdtempDisposable(join(tmpdir(), 'latchkey-failover-')));
  const programs = await ClientPrograms.build(folder.path, (await attic.authority()).certificate);
  const clients = (Object.keys(CLIENT_MATRIX) as ClientName[]).filter((client) => missingPackages(client).length === 0);
  const running = clients.map((client) => parts.use(programs.start(client)));
  /** One request for a token by each client. */
  const request = (hub: HubProcess) =>
    Promise.allSettled(
      running.map((client) => {
        const { client_id, client_secret } = heater;
        const issuer = `https://127.0.0.1:${hub.httpsPort}`;
        const input = { issuer, client_id, client_secret, scope: SCOPE };
        return client.perform({ capability: 'client_secret_basic', input });
      }),
    );
  const tokens = (results: readonly PromiseSettledResult<Readonly<Record<string, unknown>>>[]) =>
    results.map((result) => (result.status === 'fulfilled' ? result.value['access_token'] : result.reason));

  const before = tokens(await request(attic));
  rememberSecrets(before.map(String));
  await attic.kill('SIGKILL');
  const refused = await request(attic);
  expect(refused.map(({ status }) => status)).toEqual(clients.map(() => 'rejected'));
  const after = tokens(await request(cellar));
  expect(new Set(after)).toEqual(new Set([before[0]]));
});

/** How the hub that answers is lost; returns what ends that, so that the hub can be stopped. */
const LOSSES: readonly [string, (hub: SiteHub) => Promise<() => unknown>][] = [
  ['is killed', (hub) => hub.kill()],
  [
    'loses its network',
    async ({ host }) => {
      await host.plug('down');
      return () => host.plug('up');
    },
  ],
];

test.each(LOSSES)(
  'an appliance that follows mDNS has the token from another hub of the site soon after the one that answers %s',
  async (_, lose) => {
    await using parts = new AsyncDisposableStack();
    const site = parts.use(await ChaosSite.start({ connections: 1, tokenLifetime: 3600 }));
    const folder = parts.use(await mkdtempDisposable(join(tmpdir(), 'latchkey-failover-')));
    const [attic] = site.hubs;
    const [name = ''] = site.connections;
    if (attic === undefined) throw new Error('the site has no hub');
    const { client_id, client_secret } = await attic.process.addAppliance(name, null, 'home');
    await site.pair(name, attic);
    const caFile = join(folder.path, 'ca.pem');
    await writeFile(caFile, (await attic.process.authority()).certificate);
    const appliance = site.spawnAppliance('/usr/bin/python3', [
      join(import.meta.dirname, 'mdns-appliance.py'),
      ...[site.addressOf('appliances'), caFile, client_id, client_secret],
    ]);
    const issued = (matches: (hub: string) => boolean) =>
      appliance.line((line) => {
        const token = JSON.parse(line) as { readonly hub: string; readonly token: string; readonly at: number };
        return matches(token.hub) ? token : undefined;
      }, scaleDeadline(20_000));
    const first = await issued(() => true);
    rememberSecrets([first.token]);
    const ids = await Promise.all(site.hubs.map(async ({ process }) => (await process.status()).hub.id));

    const lost = Number(process.hrtime.bigint()) / 1e9;
    const hub = site.hubs[ids.indexOf(first.hub)];
    if (hub === undefined) throw new Error('the token came from no hub of the site');
    const end = await lose(hub);
    parts.defer(async () => void (await end()));
    const next = await issued((hub) => hub !== first.hub);
    expect(next.token).toBe(first.token);
    expect(ids).toContain(next.hub);
    expect((next.at - lost) * 1000).toBeLessThan(scaleDeadline(MDNS_FAILOVER));
  },
);

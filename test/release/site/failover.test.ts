import { existsSync } from 'node:fs';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ChaosSite } from '../../chaos/site/chaos-site.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { lanSkipReason } from '../../support/netns.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(postgresSkipReason);

const PYTHON_PACKAGES = '/usr/lib/python3/dist-packages';
skipIfUnavailable(async () => {
  const missing = ['zeroconf', 'requests_oauthlib'].find((name) => !existsSync(join(PYTHON_PACKAGES, name)));
  return missing === undefined ? lanSkipReason(['/usr/bin/python3', '/usr/sbin/nft']) : `python3-${missing} is missing`;
});

/** How soon an appliance that follows mDNS has a token from another hub, in ms on a quiet machine. */
const MDNS_FAILOVER = 5000;

test('an appliance that follows mDNS has the token from another hub of the site soon after the one that answers loses its network', async () => {
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
  // Nothing refuses its connections then, as it would if only the process had ended.
  await hub.host.plug('down');
  parts.defer(() => hub.host.plug('up'));
  const next = await issued((hub) => hub !== first.hub);
  expect(next.token).toBe(first.token);
  expect(ids).toContain(next.hub);
  expect((next.at - lost) * 1000).toBeLessThan(scaleDeadline(MDNS_FAILOVER));
});

// Hubs of a site as mDNS announces them, in network namespaces with a real PostgreSQL server.
import { expect, test } from 'vitest';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { copyStoreKey, fullStatus, prepareSiteHub } from '../../site/site-hubs.ts';
import { createLan, type Host, lanSkipReason } from '../../support/netns.ts';
import { startPortal } from '../../support/portal.ts';
import { postgresSkipReason } from '../../support/postgres/cluster.ts';
import { startPostgres } from '../../support/postgres/server.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason([...OBSERVER_TOOLS]) ?? postgresSkipReason());

test('both hubs of a site are found under names of their own, with the id of the site and one pin', async () => {
  await using lan = await createLan(['first', 'second', 'observer']);
  const { first, second, observer } = lan.hosts;
  await using emulator = await startPortal();
  await using server = await startPostgres({ listenOn: first });
  const database = await server.createDatabase();
  const zeroconf = await observeWithZeroconf(observer);
  const hubOn = (host: Host) =>
    prepareSiteHub(database, 'Cellar hub', {
      emulator,
      within: ['ip', 'netns', 'exec', host.namespace],
      env: { LATCHKEY_LAN_ADDRESS: 'auto', LATCHKEY_LAN_LISTEN: '0.0.0.0' },
    });
  await using one = await hubOn(first);
  await using other = await hubOn(second);
  await one.launch();
  await copyStoreKey(one, other);
  await other.launch();
  const pin = (await one.authority()).fingerprint;
  const names: string[] = [];
  for (const hub of [one, other]) {
    const { hub: own, site } = await fullStatus(hub);
    const found = await zeroconf.found(({ txt }) => txt['id'] === own.id);
    expect(found.txt).toMatchObject({ site: site?.id, capk: pin });
    expect(site?.id).toMatch(/^site-/);
    expect(['Cellar hub', `Cellar hub (${own.id.slice(9, 13)})`]).toContain(found.instanceName);
    names.push(found.instanceName);
  }
  expect(names.filter((name) => name === 'Cellar hub')).toHaveLength(1);
});

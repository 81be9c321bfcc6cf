import { expect, test } from 'vitest';
import { captureState } from '../../../src/store/backup/backup.ts';
import { sampleGrant } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, HEATER, ownConnection, sampleSession, WALLBOX } from '../../store/test-store.ts';
import { PostgresProxy } from '../../support/postgres/proxy.ts';

const siteServer = useSiteServer();
const MADE = Date.UTC(2031, 4, 5, 6);

test('a backup of a site has the id of the hub that makes it, and nothing that only a site or another hub has', async () => {
  const database = await (await siteServer()).createDatabase();
  await using first = await openSiteStore(siteAddress(database), HUB_A);
  await using second = await openSiteStore(siteAddress(database), HUB_B);
  const settings = { setup_code: 'the code', page_sessions: 'sessions', notices: 'notices' };
  await first.settings.save({ ...settings, leaf: 'the leaf', notices_of_hub: 'own notices' });
  expect((await captureState(second, MADE)).settings).toEqual(
    new Map([
      ['hub_id', HUB_B],
      ['setup_code', 'the code'],
    ]),
  );
});

test('a backup of a site has all rows as they were at one moment', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  await using proxy = await PostgresProxy.start(server);
  await using first = await openSiteStore(siteAddress(database), HUB_A);
  await using second = await openSiteStore(siteAddress(database, proxy), HUB_B);
  await addAppliance(first, WALLBOX);
  await first.grants.replace(sampleGrant());
  const held = proxy.lose('request', /FROM appliances ORDER/, { by: 'hold' });
  const backup = captureState(second, MADE);
  await held;
  await addAppliance(first, HEATER);
  await first.grants.replace(sampleGrant({ connection: HEATER.id }));
  await first.sessions.save(sampleSession(HEATER, 'heater'));
  await first.grants.replace(sampleGrant({ generation: 2 }));
  proxy.pass();
  expect(await backup).toMatchObject({
    connections: [ownConnection(WALLBOX)],
    appliances: [WALLBOX],
    grants: [{ generation: 1 }],
    sessions: [],
  });
});

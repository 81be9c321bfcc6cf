import { expect, test } from 'vitest';
import { captureState } from '../../../src/store/backup/backup.ts';
import { systemClock } from '../../../src/system/clock.ts';
import { sampleGrant } from '../../core/samples.ts';
import { HUB_A, HUB_B, openSiteStore, siteAddress, useSiteServer } from '../../site/site-harness.ts';
import { addAppliance, FRIDGE, HEATER, ownConnection, sampleSession, WALLBOX } from '../../store/test-store.ts';
import { longestTurnShare } from '../../support/loop-turns.ts';
import { PostgresProxy } from '../../support/postgres/proxy.ts';

const siteServer = useSiteServer();
const MADE = Date.UTC(2031, 4, 5, 6);
const HOUR = 3_600_000;

test('a backup of a site has the id of the hub that makes it, and nothing that only a site or another hub has', async () => {
  const database = await (await siteServer()).createDatabase();
  await using first = await openSiteStore(siteAddress(database), HUB_A);
  await using second = await openSiteStore(siteAddress(database), HUB_B);
  const settings = { setup_code: 'the code', page_sessions: 'sessions', notices: 'notices' };
  await first.saveSettings({ ...settings, leaf: 'the leaf', notices_of_hub: 'own notices' });
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
  await first.replaceGrant(sampleGrant());
  const held = proxy.lose('request', /FROM appliances WHERE id >/, { by: 'hold' });
  const backup = captureState(second, MADE);
  await held;
  await addAppliance(first, HEATER);
  await first.replaceGrant(sampleGrant({ connection: HEATER.id }));
  await first.saveSession(sampleSession(HEATER, 'heater'));
  await first.replaceGrant(sampleGrant({ generation: 2 }));
  proxy.pass();
  expect(await backup).toMatchObject({
    connections: [ownConnection(WALLBOX)],
    appliances: [WALLBOX],
    grants: [{ generation: 1 }],
    sessions: [],
  });
});

test('a backup of a site with damaged rows contains the others, and what the damaged ones say in the clear', async () => {
  const server = await siteServer();
  const database = await server.createDatabase();
  await using store = await openSiteStore(siteAddress(database), HUB_A);
  for (const appliance of [FRIDGE, HEATER, WALLBOX]) {
    await addAppliance(store, appliance);
    await store.replaceGrant(sampleGrant({ connection: appliance.connection }));
    await store.saveSession(sampleSession(appliance, appliance.name));
  }
  for (const [table, column] of [
    ['appliances', 'name'],
    ['connections', 'name'],
  ]) {
    await server.sql(database, `UPDATE latchkey.${table} SET sealed = 'damaged' WHERE ${column} = 'fridge';`);
  }
  await server.sql(
    database,
    `UPDATE latchkey.grants SET sealed = 'damaged' WHERE connection = '${FRIDGE.connection}';`,
  );
  await server.sql(database, `UPDATE latchkey.sessions SET sealed = 'damaged' WHERE appliance = '${FRIDGE.id}';`);
  const backup = await captureState(store, MADE);
  const byName = (name: string) => backup.appliances.find((each) => each.name === name);
  expect(backup.connections).toHaveLength(3);
  expect([byName('fridge')?.credentials.kind, byName('heater')]).toEqual(['none', HEATER]);
  expect(backup.grants.map(({ connection }) => connection).sort()).toEqual([WALLBOX.id, HEATER.id]);
  expect(backup.sessions.map(({ hash }) => hash)).toEqual(['hash-heater', 'hash-wallbox']);
});

test('the times in a backup of a site are those of the database, whatever the clocks of its hubs say', async () => {
  const database = await (await siteServer()).createDatabase();
  const clock = systemClock('boot-a');
  await using first = await openSiteStore(siteAddress(database), HUB_A, { clock });
  const real = systemClock('boot-b');
  const wrong = { now: () => ({ ...real.now(), wall: real.now().wall - 5 * HOUR }) };
  await using second = await openSiteStore(siteAddress(database), HUB_B, { clock: wrong });
  await addAppliance(first, WALLBOX);
  const obtained = clock.now();
  await first.replaceGrant(sampleGrant({ obtained }));
  await first.saveSession({ ...sampleSession(WALLBOX, 'wallbox'), begun: obtained });
  const { grants, sessions } = await captureState(second, MADE);
  for (const instant of [grants[0]?.obtained, sessions[0]?.begun]) {
    expect(instant?.boot).toBe('boot-b');
    expect(Math.abs((instant?.wall ?? 0) - obtained.wall)).toBeLessThan(HOUR);
  }
});

test('the rows of a backup of a site are read and decrypted in many turns of the event loop', async () => {
  const database = await (await siteServer()).createDatabase();
  await using store = await openSiteStore(siteAddress(database), HUB_A);
  const ids = Array.from({ length: 2000 }, () => crypto.randomUUID());
  const appliances = ids.map((id) => ({ ...WALLBOX, id, clientId: id, name: `a-${id}`, connection: id }));
  const copy = { ...(await captureState(store, MADE)), appliances, connections: appliances.map(ownConnection) };
  expect(copy.connections).toHaveLength(2000);
  await store.restore(() => ({
    state: {
      ...{ settings: new Map(), connections: copy.connections, appliances, removedConnections: new Set<string>() },
      ...{ removedAppliances: new Set<string>(), movedAppliances: [], sessions: [] },
      grants: ids.map((connection) => sampleGrant({ connection })),
    },
  }));
  expect(await longestTurnShare(() => captureState(store, MADE))).toBeLessThan(0.2);
  expect((await captureState(store, MADE)).grants).toHaveLength(2000);
});

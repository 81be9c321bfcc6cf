// Other titles for appliances and connections, in virtual time, on a real store.

import { expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf, requestToken } from './broker-services.ts';

/** The titles of all appliances, and of all connections, by name. */
const titlesOf = ({ run: { appliances, connections } }: BrokerHarness) =>
  [appliances, connections].map((all) => Object.fromEntries(all.list().map(({ name, title }) => [name, title])));
const renamings = ({ events }: BrokerHarness) =>
  events.flatMap(({ event, fields }) => (event.endsWith('_renamed') ? [{ event, ...fields }] : []));

/** A waiting appliance that has called itself so. */
async function registerWaiting({ run: { registrations } }: BrokerHarness, clientName: string): Promise<void> {
  registrations.setOpenFor(60_000);
  const metadata = { clientName, scope: null, softwareId: null, keys: [{ kty: 'EC' }] };
  await registrations.register(metadata, null, `the device ${clientName}`);
}

test('an appliance gets another title with its own connection, and all else of it stays', async () => {
  const { harness } = await BrokerHarness.startPaired();
  const token = await requestToken(harness, 'wallbox');
  const [appliance, connection] = [harness.run.appliances.get('wallbox'), harness.connection('wallbox')];
  const status = await administrationOf(harness).renameAppliance('wallbox', '  Wärmepumpe Keller ');
  expect(status).toMatchObject({ name: 'wallbox', title: 'Wärmepumpe Keller', state: 'active' });
  await harness.crash();
  await harness.start();
  const title = 'Wärmepumpe Keller';
  expect(harness.run.appliances.get(title)).toEqual({ ...appliance, title });
  expect(harness.run.connections.get(title)).toEqual({ ...connection, title });
  expect(await requestToken(harness, 'wallbox')).toBe(token);
  expect(renamings(harness)).toEqual([
    { event: 'appliance_renamed', appliance: 'wallbox', before: 'wallbox', title, user: undefined },
  ]);
});

test('nothing is written or logged if the title is the one before', async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  const administration = administrationOf(harness);
  await harness.addConnection('shared');
  const { changeCount } = harness.run.store;
  await administration.renameAppliance('wallbox', 'wallbox');
  await administration.renameConnection('shared', 'shared');
  expect([harness.run.store.changeCount, renamings(harness)]).toEqual([changeCount, []]);
});

test.each([
  ['', 'name_invalid'],
  ['a\nb', 'name_invalid'],
  ['x'.repeat(65), 'name_invalid'],
  ['Solar Dach', 'appliance_exists'],
  ['SOLAR-dach', 'appliance_exists'],
  ['Shared', 'connection_exists'],
  ['Netatmo', 'connection_exists'],
])('an appliance with a connection of its own cannot be called %j: %s', async (title, code) => {
  const { harness } = await BrokerHarness.startUnpaired();
  const administration = administrationOf(harness);
  await harness.addAppliance('Solar Dach');
  for (const name of ['shared', 'netatmmo']) await harness.addConnection(name);
  await administration.renameConnection('netatmmo', 'Netatmo');
  const before = titlesOf(harness);
  await expect(administration.renameAppliance('wallbox', title)).rejects.toMatchObject({ code });
  expect(titlesOf(harness)).toEqual(before);
});

test.each([
  ['x'.repeat(65), 'name_invalid'],
  ['Tado', 'connection_exists'],
  ['Wallbox', 'connection_exists'],
  ['Heat pump', 'connection_exists'],
])('a connection cannot be called %j: %s', async (title, code) => {
  const { harness } = await BrokerHarness.startUnpaired();
  const administration = administrationOf(harness);
  for (const name of ['netatmo', 'tado']) await harness.addConnection(name);
  await harness.addAppliance('heatpmup');
  await administration.renameAppliance('heatpmup', 'Heat pump');
  const before = titlesOf(harness);
  await expect(administration.renameConnection('netatmo', title)).rejects.toMatchObject({ code });
  await expect(administration.addConnection(title, null, null)).rejects.toMatchObject({ code });
  expect(titlesOf(harness)).toEqual(before);
});

test('what is added after a renaming cannot get the title either, and an appliance that registers gets a number', async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  const administration = administrationOf(harness);
  for (const name of ['netatmmo', 'tado']) await harness.addConnection(name);
  await administration.renameConnection('netatmmo', 'Netatmo');
  await administration.renameAppliance('wallbox', 'Heat pump');
  const own = { connections: [], scope: null, portal: null };
  await expect(administration.addAppliance('Heat pump', own)).rejects.toMatchObject({ code: 'appliance_exists' });
  await expect(administration.addAppliance('Netatmo', own)).rejects.toMatchObject({ code: 'connection_exists' });
  for (const name of ['Heat pump', 'Netatmo']) await registerWaiting(harness, name);
  expect(titlesOf(harness)[0]).toEqual({
    wallbox: 'Heat pump',
    'heat-pump-2': 'Heat pump 2',
    'netatmo-2': 'Netatmo 2',
  });
});

test.each(['Heat pump', '暖房'])('an appliance that waits for approval gives up the title %s', async (title) => {
  const { harness } = await BrokerHarness.startUnpaired();
  const administration = administrationOf(harness);
  await registerWaiting(harness, title);
  await administration.renameAppliance('wallbox', title);
  const { wallbox, ...others } = titlesOf(harness)[0] ?? {};
  expect(wallbox).toBe(title);
  expect(harness.run.appliances.get(title).name).toBe('wallbox');
  expect(Object.values(others)).toHaveLength(1);
});

test('an appliance that waits for approval does not keep another one from being added with its title', async () => {
  const harness = await BrokerHarness.start();
  await registerWaiting(harness, '暖房');
  const own = { connections: [], scope: null, portal: null };
  expect(await administrationOf(harness).addAppliance('暖房', own)).toMatchObject({ title: '暖房' });
});

test('of two appliances that get one title at once, one gets it', async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  await harness.addAppliance('heater');
  const administration = administrationOf(harness);
  const twice = ['wallbox', 'wallbox', 'heater'].map((name) => administration.renameAppliance(name, 'Heat pump'));
  const results = await Promise.allSettled(twice);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  expect(results[2]).toMatchObject({ reason: { code: 'appliance_exists' } });
  expect(titlesOf(harness)[0]).toEqual({ wallbox: 'Heat pump', heater: 'heater' });
});

test('a shared connection keeps its title when an appliance gets another one, and gets its own by itself', async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.addUser('dashboard', 'wallbox');
  const administration = administrationOf(harness);
  await administration.renameAppliance('wallbox', 'Heat pump');
  expect(titlesOf(harness)).toEqual([{ wallbox: 'Heat pump', dashboard: 'dashboard' }, { wallbox: 'wallbox' }]);
  const renamed = await administration.renameConnection('wallbox', 'Netatmo');
  expect(renamed).toMatchObject({ name: 'wallbox', title: 'Netatmo', state: 'active' });
  await administration.removeAppliance('dashboard');
  // An installer has named it, so it is no part of the appliance any more.
  expect(harness.connection('wallbox')).toMatchObject({ title: 'Netatmo', origin: 'added' });
  await administration.renameAppliance('wallbox', 'Wallbox Garage');
  await harness.restart();
  expect(titlesOf(harness)).toEqual([{ wallbox: 'Wallbox Garage' }, { wallbox: 'Netatmo' }]);
});

test('the own connection of an appliance is renamed with the appliance only', async () => {
  const { harness } = await BrokerHarness.startUnpaired();
  await expect(administrationOf(harness).renameConnection('wallbox', 'Netatmo')).rejects.toMatchObject({
    code: 'not_allowed',
    message: expect.stringContaining('latchkey appliance rename wallbox TITLE'),
  });
});

test('what the configuration declares is not renamed, and the hub says where it is declared', async () => {
  const harness = await BrokerHarness.start();
  await harness.stop();
  Object.assign(harness, {
    declaredConnections: [{ name: 'family', scope: null, portal: null }],
    declared: [
      {
        ...{ name: 'heater', clientId: 'heater', connections: [], scope: null, portal: null },
        credentials: { kind: 'secret', hash: 'the-hash' },
      },
    ],
  });
  await harness.start();
  const administration = administrationOf(harness);
  const before = titlesOf(harness);
  for (const [renamed, code, table] of [
    [administration.renameAppliance('heater', 'Heat pump'), 'appliance_declared', '[appliances.heater]'],
    [administration.renameConnection('heater', 'Heat pump'), 'connection_declared', '[appliances.heater]'],
    [administration.renameConnection('family', 'Netatmo'), 'connection_declared', '[connections.family]'],
  ] as const)
    await expect(renamed).rejects.toMatchObject({ code, message: expect.stringContaining(table) });
  expect(titlesOf(harness)).toEqual(before);
});

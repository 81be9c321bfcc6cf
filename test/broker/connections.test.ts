// Connections and the appliances that use them, in virtual time, on a real store.

import { describe, expect, test } from 'vitest';
import { connectionIds } from '../../src/core/appliances/appliance.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf, requestToken } from './broker-services.ts';

/** A waiting appliance with this name, and its own connection. @returns its id */
async function registerWaiting({ run: { registrations } }: BrokerHarness, clientName: string): Promise<string> {
  registrations.setOpenFor(60_000);
  const metadata = { clientName, scope: null, softwareId: null, keys: [{ kty: 'EC' }] };
  const result = await registrations.register(metadata, null, `the device ${clientName}`);
  if (result.kind !== 'registered') throw new Error(`not registered: ${result.kind}`);
  return result.clientId;
}

const namesOf = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name);
const connectionNames = ({ run }: BrokerHarness) => namesOf(run.connections.list());
const usersOf = (harness: BrokerHarness, connection: string) =>
  namesOf(harness.run.appliances.usersOf(harness.run.connections.get(connection).id));
const refusal = (code: string, message: RegExp) => ({ code, message: expect.stringMatching(message) });

/** What the hub knows of connections and appliances, and after a restart the same from the store. */
async function expectStored(harness: BrokerHarness): Promise<void> {
  const known = () => [harness.run.connections.list(), harness.run.appliances.list()];
  const before = known();
  await harness.restart();
  expect(known()).toEqual(before);
}

describe('new connection', () => {
  test('a connection can be added before any appliance uses it, and is still there after a restart', async () => {
    const harness = await BrokerHarness.start();
    const status = await administrationOf(harness).addConnection('heating', ' RemoteControl  Monitoring ', 'other');
    expect(status).toMatchObject({
      name: 'heating',
      portal: 'other',
      scope: 'RemoteControl Monitoring',
      state: 'unpaired',
      users: [],
    });
    expect(harness.connection('heating').origin).toBe('added');
    await expectStored(harness);
  });

  test.each([
    ['wallbox', null, null, 'connection_exists'],
    ['shared', null, null, 'connection_exists'],
    ['Shared', null, null, 'connection_exists'],
    ['a\nb', null, null, 'name_invalid'],
    ['heater', 'a"b', null, 'scope_invalid'],
    ['heater', null, 'nowhere', 'portal_unknown'],
  ])('the hub does not add the connection %s with scope %s at portal %s: %s', async (name, scope, portal, code) => {
    const { harness } = await BrokerHarness.startUnpaired();
    await harness.addConnection('shared');
    const before = harness.run.connections.list();
    await expect(administrationOf(harness).addConnection(name, scope, portal)).rejects.toMatchObject({ code });
    expect(harness.run.connections.list()).toEqual(before);
  });

  test('an appliance that waits for approval gives up its name for a connection, and its own one too', async () => {
    const harness = await BrokerHarness.start();
    const id = await registerWaiting(harness, 'heating');
    await administrationOf(harness).addConnection('heating', 'Monitoring', null);
    expect(harness.run.appliances.byId(id)).toMatchObject({ name: 'heating-2', connection: id });
    expect(usersOf(harness, 'heating')).toEqual([]);
    expect(usersOf(harness, 'heating-2')).toEqual(['heating-2']);
    await expectStored(harness);
  });
});

describe('connection of a new appliance', () => {
  test('an appliance can be added to a connection with its scope and portal named', async () => {
    const harness = await BrokerHarness.start();
    const { id } = await harness.addConnection('shared', { scope: 'RemoteControl Monitoring' });
    const choice = { connections: ['shared'], scope: 'Monitoring RemoteControl', portal: 'home' };
    const { appliance } = await harness.run.appliances.add('heater', choice);
    expect(appliance.connection).toBe(id);
    expect(connectionNames(harness)).toEqual(['shared']);
    await expectStored(harness);
  });

  test.each([
    [
      'heater',
      { connections: ['nowhere'], scope: null, portal: null },
      'connection_unknown',
      /no appliance or connection nowhere/,
    ],
    [
      ...['heater', { connections: ['shared'], scope: 'Other', portal: null }, 'connection_mismatch'],
      /the scope "Other", and the connection shared has "Monitoring"/,
    ],
    [
      ...['heater', { connections: ['shared'], scope: null, portal: 'other' }, 'connection_mismatch'],
      /the portal other, and the connection shared is at home/,
    ],
    [
      ...['shared', { connections: [], scope: null, portal: null }, 'connection_exists'],
      /a connection shared already: add --connection shared/,
    ],
  ] as const)('the hub does not add the appliance %s with %o: %s', async (name, choice, code, message) => {
    const harness = await BrokerHarness.start();
    await harness.addConnection('shared');
    await expect(harness.run.appliances.add(name, choice)).rejects.toMatchObject(refusal(code, message));
    expect(harness.run.appliances.list()).toEqual([]);
    expect(connectionNames(harness)).toEqual(['shared']);
  });

  test('an installer chooses the connection of an appliance that registered itself', async () => {
    const harness = await BrokerHarness.start();
    const administration = administrationOf(harness);
    await harness.addConnection('shared');
    await registerWaiting(harness, 'heater');
    await expect(administration.approveAppliance('heater', null, 'nowhere')).rejects.toMatchObject({
      code: 'connection_unknown',
    });
    expect(await administration.approveAppliance('heater', null, 'shared')).toMatchObject({ connection: 'shared' });
    expect(connectionNames(harness)).toEqual(['shared']);
    await registerWaiting(harness, 'lamp');
    expect(await administration.approveAppliance('lamp', null, null)).toMatchObject({ connection: 'lamp' });
    await harness.addConnection('elsewhere', { portal: 'other' });
    await registerWaiting(harness, 'fan');
    expect(await administration.approveAppliance('fan', null, 'elsewhere')).toMatchObject({ portal: 'other' });
    await registerWaiting(harness, 'pump');
    await expect(administration.approveAppliance('pump', null, null, 'third')).rejects.toMatchObject(
      refusal('portal_unknown', /there is no portal third; configured portals: home, other/),
    );
    await expect(administration.approveAppliance('pump', null, 'elsewhere', 'home')).rejects.toMatchObject(
      refusal('connection_mismatch', /the portal home, and the connection elsewhere is at other/),
    );
    expect(await administration.approveAppliance('pump', null, null, 'other')).toMatchObject({ portal: 'other' });
    await expectStored(harness);
  });
});

describe('own connection', () => {
  test('the own connection of an appliance is removed with it, and its grant with it', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await administrationOf(harness).removeAppliance('wallbox');
    expect(connectionNames(harness)).toEqual([]);
    expect(await harness.token(id)).toBe('not_paired');
    expect(await harness.run.store.grants.all()).toEqual([]);
    await harness.time.pass(3 * 3_600_000);
    expect(harness.refreshes).toBe(0);
  });

  test("the own connection of an appliance stays while another appliance uses it, and then, too, as it is nobody's own", async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await harness.addUser('dashboard', 'wallbox');
    await administrationOf(harness).removeAppliance('wallbox');
    expect(usersOf(harness, 'wallbox')).toEqual(['dashboard']);
    expect(await harness.whoami(await requestToken(harness, 'dashboard'))).toBe(200);
    await expect(harness.addAppliance('wallbox')).rejects.toMatchObject({ code: 'connection_exists' });
    await harness.addUser('wallbox', 'wallbox');
    await administrationOf(harness).removeAppliance('wallbox');
    await administrationOf(harness).removeAppliance('dashboard');
    expect(harness.run.connections.list()).toMatchObject([{ id, name: 'wallbox', origin: 'added' }]);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
    await expectStored(harness);
  });

  test('the own connection of an appliance is removed with it, if that uses no other', async () => {
    const harness = await BrokerHarness.start();
    const administration = administrationOf(harness);
    await harness.addPairedAppliance('wallbox');
    await harness.addPairedAppliance('hass');
    await harness.addConnection('shared');
    await administration.moveAppliance('hass', ['hass', 'shared']);
    expect(harness.statusOf('hass')).toMatchObject({ connections: ['hass', 'shared'] });
    await administration.removeAppliance('hass');
    await administration.removeAppliance('wallbox');
    expect(harness.run.connections.list()).toMatchObject([
      { name: 'hass', origin: 'added' },
      { name: 'shared', origin: 'added' },
    ]);
    await expectStored(harness);
  });

  test('a connection that is removed is taken from an appliance that uses others, even if it was its own', async () => {
    const harness = await BrokerHarness.start();
    const administration = administrationOf(harness);
    await harness.addPairedAppliance('hass');
    await harness.addConnection('shared');
    await administration.moveAppliance('hass', ['hass', 'shared']);
    await administration.removeConnection('hass', true);
    expect(connectionNames(harness)).toEqual(['shared']);
    expect(harness.statusOf('hass')).toMatchObject({ connection: 'shared' });
    await expectStored(harness);
  });

  test('a connection that is removed while an appliance gets it, in either order, is not used by that', async () => {
    const harness = await BrokerHarness.start();
    const administration = administrationOf(harness);
    for (const name of ['a', 'b']) await harness.addConnection(name);
    await harness.addAppliance('hass');
    await harness.addConnection('c');
    const move = (...to: string[]) => administration.moveAppliance('hass', to);
    await Promise.allSettled([administration.removeConnection('b', true), move('a', 'b')]);
    await Promise.allSettled([move('a', 'c'), administration.removeConnection('c', true)]);
    expect(connectionNames(harness)).not.toContain('b');
    expect(connectionNames(harness)).not.toContain('c');
    const { appliances, connections } = harness.run;
    const used = appliances.get('hass');
    expect(connections.allOfAppliance(used).map(({ id }) => id)).toEqual(connectionIds(used));
  });
});

describe('appliance that moves to another connection', () => {
  test('an own connection whose login could not be stored yet is kept when its appliance moves', async () => {
    const harness = await BrokerHarness.start();
    const id = await harness.addPairedAppliance('wallbox');
    await harness.run.grants.delete(id);
    await harness.addConnection('shared');
    harness.failingWrites.add('saveLogin');
    await harness.pairAgain('wallbox');
    expect(await harness.run.store.grants.get(id)).toBeNull();
    await administrationOf(harness).moveAppliance('wallbox', ['shared']);
    expect(harness.run.connections.byId(id)).toMatchObject({ name: 'wallbox' });
    harness.failingWrites.clear();
    await harness.time.pass(5 * 60_000);
    expect((await harness.run.store.grants.get(id))?.grant.accessToken.reveal()).toBe(await harness.token(id));
  });

  test('an own connection with a grant is kept when its appliance moves, and can be removed then', async () => {
    const harness = await BrokerHarness.start();
    const administration = administrationOf(harness);
    const id = await harness.addPairedAppliance('wallbox');
    await harness.addConnection('shared');
    await harness.pairAgain('shared');
    const former = await harness.token(id);
    expect(await administration.moveAppliance('wallbox', ['shared'])).toMatchObject({ connection: 'shared' });
    expect(harness.run.connections.byId(id)).toMatchObject({ name: 'wallbox', origin: 'added' });
    expect(await requestToken(harness, 'wallbox')).toBe(await harness.token(harness.connection('shared').id));
    expect(await harness.token(id)).toBe(former);
    await expectStored(harness);
    await administrationOf(harness).moveAppliance('wallbox', ['wallbox']);
    expect(await requestToken(harness, 'wallbox')).toBe(former);
    expect(usersOf(harness, 'shared')).toEqual([]);
    await administrationOf(harness).moveAppliance('wallbox', ['shared']);
    await administrationOf(harness).removeConnection('wallbox', false);
    expect(connectionNames(harness)).toEqual(['shared']);
    expect(await harness.token(id)).toBe('not_paired');
  });

  test('an own connection without a grant is removed with its open pairing when its appliance moves', async () => {
    const { harness, appliance } = await BrokerHarness.startUnpaired();
    const run = await harness.beginPairing('wallbox');
    await harness.addConnection('shared');
    await administrationOf(harness).moveAppliance('wallbox', ['shared']);
    expect(connectionNames(harness)).toEqual(['shared']);
    expect(run.isOpen).toBe(false);
    expect(harness.run.pairings.newestFor(appliance.id)).toBeUndefined();
    expect((await harness.run.store.pairings.all()).filter(({ connection }) => connection === appliance.id)).toEqual(
      [],
    );
    const polls = harness.portal.requests('code').length;
    await harness.time.pass(60_000);
    expect(harness.portal.requests('code')).toHaveLength(polls);
    await expectStored(harness);
  });

  test('an appliance moves to any connections, and each that was made for it and that it leaves is kept if it has a grant', async () => {
    const harness = await BrokerHarness.start();
    const administration = administrationOf(harness);
    await harness.addAppliance('wallbox', 'RemoteControl');
    const paired = await harness.addPairedAppliance('pump');
    await harness.addAppliance('fan');
    await harness.addConnection('elsewhere', { scope: null, portal: 'other' });
    await administration.moveAppliance('wallbox', ['wallbox', 'pump', 'fan']);
    for (const name of ['pump', 'fan']) await administration.moveAppliance(name, ['elsewhere']);
    await expect(administration.moveAppliance('wallbox', ['nowhere'])).rejects.toMatchObject({
      code: 'connection_unknown',
    });
    expect(usersOf(harness, 'wallbox')).toEqual(['wallbox']);
    await administration.moveAppliance('wallbox', ['elsewhere']);
    expect(usersOf(harness, 'elsewhere')).toEqual(['fan', 'pump', 'wallbox']);
    expect(connectionNames(harness)).toEqual(['elsewhere', 'pump']);
    expect(harness.run.connections.byId(paired)).toMatchObject({ origin: 'added' });
    await expectStored(harness);
  });

  test('a move leaves everything as it was when the store cannot save it', async () => {
    const { harness, id } = await BrokerHarness.startPaired();
    await harness.addConnection('shared');
    harness.failingWrites.add('registry.save');
    await expect(administrationOf(harness).moveAppliance('wallbox', ['shared'])).rejects.toMatchObject({
      code: 'store_unwritable',
    });
    expect(usersOf(harness, 'wallbox')).toEqual(['wallbox']);
    expect(harness.run.connections.byId(id)?.origin).toBe('implicit');
    expect(await harness.whoami(await requestToken(harness, 'wallbox'))).toBe(200);
  });
});

describe('removed connection', () => {
  test('a connection that appliances use is removed only on request, and the failure names them', async () => {
    const harness = await BrokerHarness.start();
    await harness.addConnection('shared');
    for (const name of ['thermostat', 'dashboard']) await harness.addUser(name, 'shared');
    await harness.pairAgain('shared');
    const message = /^dashboard and thermostat use the connection shared: move or remove them first/;
    await expect(administrationOf(harness).removeConnection('shared', false)).rejects.toMatchObject(
      refusal('connection_in_use', message),
    );
    expect(await harness.whoami(await requestToken(harness, 'dashboard'))).toBe(200);
  });

  test('each appliance of a removed connection gets its own, and its credentials serve that', async () => {
    const harness = await BrokerHarness.start();
    const { id } = await harness.addConnection('shared', { scope: 'RemoteControl' });
    for (const name of ['dashboard', 'Shared', 'thermostat']) await harness.addUser(name, 'shared');
    await harness.pairAgain('shared');
    const credentials = harness.run.appliances.list().map((appliance) => appliance.credentials);
    await administrationOf(harness).removeConnection('shared', true);
    expect(connectionNames(harness)).toEqual(['dashboard', 'shared', 'thermostat']);
    expect(harness.connection('shared').title).toBe('Shared');
    expect(harness.run.connections.list()).toMatchObject(
      Array(3).fill({ scope: 'RemoteControl', portal: 'home', origin: 'implicit' }),
    );
    expect(harness.connection('shared').id).toBe(id);
    for (const name of connectionNames(harness)) expect(await requestToken(harness, name)).toBe('not_paired');
    expect(harness.run.appliances.list().map((appliance) => appliance.credentials)).toEqual(credentials);
    expect(await harness.run.store.grants.all()).toEqual([]);
    await expectStored(harness);
    await harness.pairAgain('thermostat');
    expect(await harness.whoami(await requestToken(harness, 'thermostat'))).toBe(200);
    expect(await requestToken(harness, 'dashboard')).toBe('not_paired');
    await administrationOf(harness).removeAppliance('shared');
    expect(connectionNames(harness)).toEqual(['dashboard', 'thermostat']);
  });

  test('a connection is not removed if one of its appliances cannot get a connection with its own name', async () => {
    const harness = await BrokerHarness.start();
    await harness.addConnection('shared');
    await harness.addConnection('lamp');
    for (const name of ['dashboard', 'lamp']) await harness.addUser(name, 'shared');
    await harness.pairAgain('shared');
    await expect(administrationOf(harness).removeConnection('shared', true)).rejects.toMatchObject(
      refusal('connection_exists', /^lamp .* connection lamp .*move lamp/),
    );
    expect(usersOf(harness, 'shared')).toEqual(['dashboard', 'lamp']);
    expect(await harness.whoami(await requestToken(harness, 'lamp'))).toBe(200);
  });

  test('a removed connection is neither refreshed nor paired any more', async () => {
    const harness = await BrokerHarness.start();
    const { id } = await harness.addConnection('shared');
    await harness.pairAgain('shared');
    const run = await harness.beginPairing('shared');
    await administrationOf(harness).removeConnection('shared', false);
    expect(run.isOpen).toBe(false);
    await harness.time.pass(3 * 3_600_000);
    expect([harness.refreshes, await harness.token(id)]).toEqual([0, 'not_paired']);
    const again = await harness.addConnection('shared');
    expect(again.id).not.toBe(id);
    expect(await harness.token(again.id)).toBe('not_paired');
  });
});

test('an operation with the name of an appliance that uses a shared connection names the connection', async () => {
  const harness = await BrokerHarness.start();
  const administration = administrationOf(harness);
  await harness.addConnection('shared');
  await harness.addUser('dashboard', 'shared');
  const expected = refusal('connection_unknown', /dashboard uses the connection shared: name that one instead/);
  for (const operation of ['pair', 'unpair', 'token', 'refresh', 'history'] as const)
    await expect(administration[operation]('dashboard')).rejects.toMatchObject(expected);
});

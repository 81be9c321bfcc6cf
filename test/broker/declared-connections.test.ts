// Connections that the configuration declares, in virtual time, on a real store.
import { expect, test } from 'vitest';
import { declareConnection } from '../../src/broker/declarations/declared-connections.ts';
import type { DeclaredAppliance } from '../../src/core/appliances/appliance.ts';
import type { DeclaredConnection } from '../../src/core/connections/connection.ts';
import { systemRandom } from '../../src/system/random.ts';
import { runSql } from '../store/corrupt-store.ts';
import { logTo } from '../support/log-to.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf, lanServiceOf, requestToken } from './broker-services.ts';

const FAMILY: DeclaredConnection = { name: 'family', scope: 'Monitoring', portal: null };

/** A declared appliance. @param connection null: it has its own */
function appliance(name: string, connection: string | null): DeclaredAppliance {
  const scope = connection === null ? 'Monitoring' : null;
  const connections = connection === null ? [] : [connection];
  return { name, clientId: name, connections, scope, portal: null, credentials: { kind: 'secret', hash: 'the-hash' } };
}

/** Starts the broker anew with these declarations. */
async function declare(
  harness: BrokerHarness,
  declaredConnections: readonly DeclaredConnection[],
  ...declared: readonly DeclaredAppliance[]
): Promise<void> {
  await harness.stop();
  Object.assign(harness, { declaredConnections, declared });
  await harness.start();
}

const originsOf = ({ run }: BrokerHarness) =>
  Object.fromEntries(run.connections.list().map(({ name, origin }) => [name, origin]));

test('a declared connection is shared by declared appliances, and nothing is written while it does not change', async () => {
  const harness = await BrokerHarness.start();
  const appliances = [appliance('dashboard', 'family'), appliance('heater', 'family')];
  await declare(harness, [FAMILY], ...appliances);
  expect(originsOf(harness)).toEqual({ family: 'declared' });
  await harness.pairAgain('family');
  const token = await requestToken(harness, 'dashboard');
  await declare(harness, [FAMILY], ...appliances);
  expect(await requestToken(harness, 'heater')).toBe(token);
  const administration = administrationOf(harness);
  await expect(administration.removeConnection('family', true)).rejects.toMatchObject({ code: 'connection_declared' });
  await expect(administration.addConnection('family', null, null)).rejects.toThrow(/is declared/);
  const { changeCount } = harness.run.store;
  const { connections } = harness.run;
  const log = logTo(() => undefined);
  const context = {
    ...harness.run,
    own: { includes: () => true },
    identityOf: () => undefined,
    random: systemRandom,
    log,
  };
  expect(await declareConnection(FAMILY, 'another-id', context)).toEqual({
    id: connections.get('family').id,
    hasMoved: false,
  });
  expect(harness.run.store.changeCount).toBe(changeCount);
});

test('a connection that a full disk kept in memory is stored before somebody logs in to it', async () => {
  const harness = await BrokerHarness.start();
  harness.failingWrites.add('registry.save');
  await declare(harness, [FAMILY], appliance('dashboard', 'family'));
  expect(await harness.run.store.registry.connections()).toEqual([]);
  harness.failingWrites.clear();
  await harness.pairAgain('family');
  const token = await requestToken(harness, 'dashboard');
  await harness.restart();
  expect(await requestToken(harness, 'dashboard')).toBe(token);
});

test('connections whose names were swapped in the store give no appliance a token until each is removed', async () => {
  const harness = await BrokerHarness.start();
  const declaredConnections = ['ours', 'theirs'].map((name) => ({ ...FAMILY, name }));
  const appliances = [appliance('heater', 'ours'), appliance('boiler', 'theirs'), appliance('fridge', null)];
  await declare(harness, declaredConnections, ...appliances);
  for (const name of ['ours', 'theirs', 'fridge']) await harness.pairAgain(name);
  const token = await requestToken(harness, 'fridge');
  const used = ['heater', 'boiler'] as const;
  const connectionIds = () => used.map((name) => harness.run.appliances.get(name).connection);
  const before = connectionIds();
  await harness.stop();
  runSql(
    harness.folder,
    `UPDATE connections SET name = name || '-before' WHERE name <> 'fridge';
     UPDATE connections SET name = iif(name = 'ours-before', 'theirs', 'ours') WHERE name <> 'fridge'`,
  );
  for (let starts = 0; starts < 2; starts++) {
    await harness.start();
    expect(await Promise.all(used.map((name) => requestToken(harness, name)))).toEqual(['not_paired', 'not_paired']);
    expect(await requestToken(harness, 'fridge')).toBe(token);
    expect(connectionIds()).toEqual(before);
    await harness.stop();
  }
  await harness.start();
  const { refreshes } = harness;
  expect(harness.statusOf('heater')).toMatchObject({
    state: 'needs_pairing',
    problem: { condition: 'connection_damaged' },
  });
  const logged = harness.events.filter(({ event }) => event === 'connection_damaged');
  expect(logged.map(({ fields }) => fields['connection'])).toEqual([...Array(3)].flatMap(() => ['ours', 'theirs']));
  const administration = administrationOf(harness);
  for (const use of ['pair', 'token', 'refresh'] as const) {
    await expect(administration[use]('ours')).rejects.toThrow(/damaged/);
  }
  await expect(administration.addAppliance('tv', { connections: ['ours'], scope: null, portal: null })).rejects.toThrow(
    /damaged/,
  );
  const begun = await lanServiceOf(harness).beginDeviceFlow(harness.run.appliances.get('heater'), null);
  expect(begun).toMatchObject({ kind: 'unavailable' });
  expect(await harness.run.pairingBatches.begin()).toMatchObject({ current: null, connected: ['fridge'], skipped: [] });
  // Whoever the grants belong to, they are not lost.
  await harness.time.pass(3_600_000);
  expect(harness.refreshes - refreshes).toBeGreaterThan(2);

  for (const name of ['ours', 'theirs']) await administration.removeConnection(name, true);
  await declare(harness, declaredConnections, ...appliances);
  await harness.pairAgain('ours');
  expect(await harness.whoami(await requestToken(harness, 'heater'))).toBe(200);
  expect(await requestToken(harness, 'boiler')).toBe('not_paired');
});

test('an appliance whose own connection is damaged gets a sound one with its removal, without the grant', async () => {
  const { harness } = await BrokerHarness.startPaired();
  await harness.stop();
  runSql(harness.folder, "UPDATE connections SET scope = 'Everything'");
  await harness.start();
  expect(await requestToken(harness, 'wallbox')).toBe('not_paired');
  await administrationOf(harness).removeConnection('wallbox', true);
  expect(harness.statusOf('wallbox')).toMatchObject({ state: 'unpaired' });
  await harness.restart();
  await harness.pairAgain('wallbox');
  expect(await harness.whoami(await requestToken(harness, 'wallbox'))).toBe(200);
});

test('a declaration takes over a connection that was added before, with its grant and its appliances', async () => {
  const harness = await BrokerHarness.start();
  await harness.addConnection('family');
  await harness.addUser('heater', 'family');
  await harness.pairAgain('family');
  const token = await requestToken(harness, 'heater');
  await declare(harness, [FAMILY], appliance('dashboard', 'family'));
  expect(originsOf(harness)).toEqual({ family: 'declared' });
  for (const name of ['dashboard', 'heater']) expect(await requestToken(harness, name)).toBe(token);
});

test('a connection that is no longer declared is removed only if it has no grant and no appliance', async () => {
  const harness = await BrokerHarness.start();
  const named = (name: string) => ({ ...FAMILY, name });
  await declare(harness, [named('paired'), named('unused'), named('used')]);
  await harness.pairAgain('paired');
  await harness.addUser('heater', 'used');
  const token = await harness.token(harness.connection('paired').id);
  await declare(harness, []);
  expect(originsOf(harness)).toEqual({ paired: 'added', used: 'added' });
  expect(await harness.token(harness.connection('paired').id)).toBe(token);
  expect(harness.events.flatMap(({ event, fields }) => (event === 'connection_undeclared' ? [fields] : []))).toEqual([
    { connection: 'paired', kept: true },
    { connection: 'unused', kept: false },
    { connection: 'used', kept: true },
  ]);
  await administrationOf(harness).removeConnection('paired', false);
});

test('a connection that is no longer declared becomes the own one of its only appliance, with its title, if that has its name', async () => {
  const harness = await BrokerHarness.start();
  await declare(harness, [FAMILY]);
  await harness.addUser('Family', 'family');
  await declare(harness, []);
  expect(harness.connection('family')).toMatchObject({ title: 'Family', origin: 'implicit' });
});

test('a declared appliance that switches to a shared connection gets its own grant back when it switches back', async () => {
  const harness = await BrokerHarness.start();
  await declare(harness, [FAMILY], appliance('heater', null));
  await harness.pairAgain('heater');
  const own = await requestToken(harness, 'heater');
  await harness.pairAgain('family');
  await declare(harness, [FAMILY], appliance('heater', 'family'));
  expect(await requestToken(harness, 'heater')).toBe(await harness.token(harness.connection('family').id));
  expect(originsOf(harness)).toEqual({ family: 'declared', heater: 'added' });
  await declare(harness, [FAMILY], appliance('heater', null));
  expect(await requestToken(harness, 'heater')).toBe(own);
  expect(originsOf(harness)).toEqual({ family: 'declared', heater: 'declared' });
});

test('an appliance that is no longer declared keeps its own connection, and loses its credentials', async () => {
  const harness = await BrokerHarness.start();
  await declare(harness, [], appliance('heater', null));
  await harness.pairAgain('heater');
  await declare(harness, []);
  expect(originsOf(harness)).toEqual({ heater: 'implicit' });
  expect(harness.run.appliances.get('heater')).toMatchObject({ origin: 'added', credentials: { kind: 'none' } });
  await administrationOf(harness).removeAppliance('heater');
  expect(originsOf(harness)).toEqual({});
});

test('a declared connection moves to another portal, and keeps its grant for the way back', async () => {
  const harness = await BrokerHarness.start();
  await declare(harness, [FAMILY]);
  await harness.pairAgain('family');
  const { id } = harness.connection('family');
  const before = await harness.run.store.grants.get(id);
  const log = logTo((event, fields, level) => void harness.events.push({ event, fields, level }));
  const identityOf = (name: string) => ({ origin: `https://${name}.example`, clientId: 'the-hub', name });
  const context = { ...harness.run, own: { includes: () => true }, identityOf, random: systemRandom, log };
  expect(await declareConnection({ ...FAMILY, portal: 'other' }, '', context)).toEqual({ id, hasMoved: true });
  expect(harness.connection('family')).toMatchObject({ id, portal: 'other' });
  expect(harness.events.findLast(({ event }) => event === 'connection_moved')?.fields).toEqual({
    connection: 'family',
    before: 'home',
    portal: 'other',
  });
  expect(await harness.run.store.grants.get(id)).toEqual(before);
  await declareConnection(FAMILY, '', context);
  expect(await harness.whoami(await harness.token(id))).toBe(200);
});

test('a declared scope that differs from that of the grant is pointed out, and the grant stays in use', async () => {
  const harness = await BrokerHarness.start();
  await declare(harness, [FAMILY], appliance('heater', 'family'));
  await harness.pairAgain('family');
  await declare(harness, [{ ...FAMILY, scope: 'RemoteControl' }], appliance('heater', 'family'));
  expect(harness.statusOf('heater')).toMatchObject({ scope: 'Monitoring', wantedScope: 'RemoteControl' });
  expect(harness.events.findLast(({ event }) => event === 'scope_changed')?.fields).toMatchObject({
    connection: 'family',
    scope: 'RemoteControl',
  });
  expect(await harness.whoami(await requestToken(harness, 'heater'))).toBe(200);
});

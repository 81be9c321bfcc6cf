import { expect, test } from 'vitest';
import { reconcileAppliances } from '../../src/broker/declarations/declared-appliances.ts';
import type { Appliance, DeclaredAppliance } from '../../src/core/appliances/appliance.ts';
import { systemRandom } from '../../src/system/random.ts';
import { logTo } from '../support/log-to.ts';
import { BrokerHarness } from './broker-harness.ts';

const WALLBOX: DeclaredAppliance = {
  name: 'wallbox',
  clientId: 'wallbox',
  connections: [],
  scope: 'Monitoring',
  portal: null,
  credentials: { kind: 'secret', hash: 'the-hash' },
};

const PORTALS = new Map([
  ['home', { origin: 'https://portal.example', clientId: 'home', name: 'home' }],
  ['same', { origin: 'https://portal.example', clientId: 'home', name: 'same' }],
  ['other', { origin: 'https://other.example', clientId: 'other', name: 'other' }],
]);

/** Applies declarations, as at a start. @returns the ids of the appliances that moved to another portal */
function reconcile(harness: BrokerHarness, ...declarations: DeclaredAppliance[]): Promise<string[]> {
  const { appliances, connections } = harness.run;
  harness.declared = declarations;
  const write = (event: string) => harness.events.push({ level: 'info', event, fields: {} });
  const log = logTo(write);
  return reconcileAppliances(declarations, '/etc/l.toml', {
    connections,
    appliances,
    random: systemRandom,
    log,
    own: { includes: () => true },
    identityOf: (portal) => PORTALS.get(portal),
  });
}

const applianceNamed = (harness: BrokerHarness, name: string): Appliance => harness.run.appliances.get(name);

test('an appliance is declared once, and nothing is written while its declaration does not change', async () => {
  const harness = await BrokerHarness.start();
  await reconcile(harness, WALLBOX);
  const declared = applianceNamed(harness, 'wallbox');
  const { name, clientId, credentials, scope } = WALLBOX;
  expect(declared).toMatchObject({ name, clientId, credentials, origin: 'declared', waiting: null });
  expect(harness.connection('wallbox')).toMatchObject({ name, scope, portal: 'home', origin: 'declared' });
  await harness.restart();
  const { changeCount: changes } = harness.run.store;
  await reconcile(harness, { ...WALLBOX });
  expect(applianceNamed(harness, 'wallbox')).toEqual(declared);
  expect(harness.run.store.changeCount).toBe(changes);
});

test('the scope of an appliance is ignored as long as its declaration says so, also over a restart', async () => {
  const harness = await BrokerHarness.start();
  await reconcile(harness, { ...WALLBOX, ignoresScope: true });
  await harness.restart();
  expect(applianceNamed(harness, 'wallbox')).toHaveProperty('ignoresScope', true);
  await reconcile(harness, WALLBOX);
  expect(applianceNamed(harness, 'wallbox')).not.toHaveProperty('ignoresScope');
});

test('a declaration takes over an appliance that was added before, with its grant', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  expect(await reconcile(harness, WALLBOX)).toEqual([]);
  await harness.restart();
  expect(applianceNamed(harness, 'wallbox')).toMatchObject({ id, clientId: 'wallbox', origin: 'declared' });
  expect(harness.run.appliances.byClientId(id)).toBeUndefined();
  expect(await harness.whoami(await harness.token(id))).toBe(200);
});

test('an appliance whose declaration was renamed stays behind without its client_id and credentials', async () => {
  const harness = await BrokerHarness.start();
  await reconcile(harness, { ...WALLBOX, clientId: 'the-box' });
  const before = applianceNamed(harness, 'wallbox');
  await harness.restart();
  await reconcile(harness, { ...WALLBOX, name: 'charger', clientId: 'the-box' });
  expect(applianceNamed(harness, 'charger')).toMatchObject({ clientId: 'the-box', origin: 'declared' });
  expect(applianceNamed(harness, 'wallbox')).toEqual({
    ...before,
    clientId: before.id,
    origin: 'added',
    credentials: { kind: 'none' },
  });
});

test('a declared client_id that an added appliance has is refused before anything is changed', async () => {
  const harness = await BrokerHarness.start();
  const { appliance } = await harness.addAppliance('heater');
  const declarations = [
    { ...WALLBOX, name: 'first', clientId: 'first' },
    { ...WALLBOX, clientId: appliance.clientId },
  ];
  await expect(reconcile(harness, ...declarations)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(
      /^\/etc\/l\.toml: appliances\.wallbox\.client_id: .* the appliance heater; use another one/,
    ),
  });
  expect(harness.run.appliances.list()).toEqual([appliance]);
});

test('an appliance keeps its grant when it is declared for another portal, or for the same one by another name', async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  const before = await harness.run.store.grants.get(id);
  for (const portal of ['gone', 'same']) {
    await harness.run.connections.save(() => ({ updatedConnections: [{ ...harness.connection('wallbox'), portal }] }));
    expect(await reconcile(harness, WALLBOX)).toEqual([]);
  }
  expect(await reconcile(harness, { ...WALLBOX, portal: 'other' })).toEqual([id]);
  expect(harness.connection('wallbox')).toMatchObject({ id, portal: 'other' });
  expect(await harness.run.store.grants.get(id)).toEqual(before);
});

test('the hub serves declared appliances while the store is unwritable, and saves them at a later start', async () => {
  const harness = await BrokerHarness.start();
  await reconcile(harness, WALLBOX, { ...WALLBOX, name: 'gone', clientId: 'gone' });
  harness.failingWrites.add('registry.save');
  const credentials = { kind: 'secret', hash: 'another-hash' } as const;
  const heater = { ...WALLBOX, name: 'heater', clientId: 'heater' };
  await reconcile(harness, { ...WALLBOX, credentials }, heater);
  expect(harness.run.appliances.byClientId('wallbox')).toMatchObject({ credentials });
  expect(harness.run.appliances.byClientId('heater')).toMatchObject({ origin: 'declared' });
  expect(harness.run.appliances.byClientId('gone')).toMatchObject({ credentials: { kind: 'none' } });
  harness.failingWrites.clear();
  harness.declared = [WALLBOX];
  await harness.restart();
  expect(harness.run.appliances.byClientId('heater')).toBeUndefined();
  await reconcile(harness, { ...WALLBOX, credentials }, heater);
  await harness.restart();
  expect(harness.run.appliances.byClientId('wallbox')).toMatchObject({ credentials });
  expect(harness.run.appliances.byClientId('heater')).toMatchObject({ origin: 'declared' });
});

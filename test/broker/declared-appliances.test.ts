import { expect, test } from 'vitest';
import { reconcileAppliances } from '../../src/broker/appliances/declared-appliances.ts';
import type { Appliance, DeclaredAppliance } from '../../src/core/appliances/appliance.ts';
import { systemRandom } from '../../src/system/random.ts';
import { logTo } from '../support/log-to.ts';
import { sampleRegistrant } from '../support/registration-samples.ts';
import { BrokerHarness } from './broker-harness.ts';

const WALLBOX: DeclaredAppliance = {
  name: 'wallbox',
  clientId: 'wallbox',
  scope: 'Monitoring',
  portal: null,
  credentials: { kind: 'secret', hash: 'the-hash' },
};

const PORTALS = new Map([
  ['home', { origin: 'https://portal.example', clientId: 'home', name: 'home' }],
  ['same', { origin: 'https://portal.example', clientId: 'home', name: 'same' }],
  ['other', { origin: 'https://other.example', clientId: 'other', name: 'other' }],
]);

/** Declares, as at a start. @returns the ids of those that went to another portal */
function declare(home: BrokerHarness, ...declarations: DeclaredAppliance[]): Promise<string[]> {
  const { appliances } = home.run;
  home.declared = declarations;
  const write = (event: string) => home.events.push({ level: 'info', event, fields: {} });
  const log = logTo(write);
  return reconcileAppliances(
    { appliances: declarations, file: '/etc/l.toml' },
    {
      appliances,
      identityOf: (portal) => PORTALS.get(portal),
      random: systemRandom,
      log,
    },
  );
}

async function restart(home: BrokerHarness): Promise<void> {
  await home.stop();
  await home.start();
}

const named = (home: BrokerHarness, name: string): Appliance => home.run.appliances.get(name);

test('an appliance is declared once, and nothing is written while its declaration does not change', async () => {
  await using home = await BrokerHarness.start();
  await declare(home, WALLBOX);
  const declared = named(home, 'wallbox');
  expect(declared).toMatchObject({ ...WALLBOX, portal: 'home', origin: 'declared', waitingSince: null });
  await restart(home);
  const { changeCount: changes } = home.run.store;
  await declare(home, { ...WALLBOX });
  expect(named(home, 'wallbox')).toEqual(declared);
  expect(home.run.store.changeCount).toBe(changes);
});

test('a declaration takes over an appliance that was added before, with its grant', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox');
  expect(await declare(home, WALLBOX)).toEqual([]);
  await restart(home);
  expect(named(home, 'wallbox')).toMatchObject({ id, clientId: 'wallbox', origin: 'declared' });
  expect(home.run.appliances.byClientId(id)).toBeUndefined();
  expect(await home.whoami(await home.token(id))).toBe(200);
});

test('an appliance that waits for approval stops waiting when the configuration declares it', async () => {
  await using home = await BrokerHarness.start();
  const { registrations } = home.run;
  registrations.setOpenFor(60_000);
  await registrations.register(
    { clientName: 'wallbox', scope: 'Everything', softwareId: 'w/1', keys: [] },
    null,
    sampleRegistrant('a-device'),
  );
  await declare(home, WALLBOX);
  const { credentials, scope } = WALLBOX;
  expect(named(home, 'wallbox')).toMatchObject({ waitingSince: null, credentials, scope, softwareId: 'w/1' });
});

test('declared appliances may swap their client_ids, also three in a circle', async () => {
  await using home = await BrokerHarness.start();
  const called = (name: string, clientId: string): DeclaredAppliance => ({ ...WALLBOX, name, clientId });
  await declare(home, called('a', '1'), called('b', '2'), called('c', '3'));
  await restart(home);
  await declare(home, called('a', '2'), called('b', '3'), called('c', '1'));
  await restart(home);
  expect(home.run.appliances.list().map(({ name, clientId }) => name + clientId)).toEqual(['a2', 'b3', 'c1']);
});

test('an appliance whose declaration was renamed stays behind without its client_id and credentials', async () => {
  await using home = await BrokerHarness.start();
  await declare(home, { ...WALLBOX, clientId: 'the-box' });
  const before = named(home, 'wallbox');
  await restart(home);
  await declare(home, { ...WALLBOX, name: 'charger', clientId: 'the-box' });
  expect(named(home, 'charger')).toMatchObject({ clientId: 'the-box', origin: 'declared' });
  expect(named(home, 'wallbox')).toEqual({
    ...before,
    clientId: before.id,
    origin: 'added',
    credentials: { kind: 'none' },
  });
});

test('a declared client_id that an added appliance has is refused before anything is changed', async () => {
  await using home = await BrokerHarness.start();
  const { appliance } = await home.addAppliance('heater');
  const declarations = [
    { ...WALLBOX, name: 'first', clientId: 'first' },
    { ...WALLBOX, clientId: appliance.clientId },
  ];
  await expect(declare(home, ...declarations)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringMatching(/^\/etc\/l\.toml: appliances\.wallbox\.client_id: .* the appliance heater; use another one/),
  });
  expect(home.run.appliances.list()).toEqual([appliance]);
});

test('an appliance keeps its grant when it is declared for another portal, or for the same one by another name', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox');
  const before = await home.run.store.grant(id);
  for (const portal of ['gone', 'same']) {
    await home.run.appliances.update(id, (current) => ({ ...current, portal }));
    expect(await declare(home, WALLBOX)).toEqual([]);
  }
  expect(await declare(home, { ...WALLBOX, portal: 'other' })).toEqual([id]);
  expect(named(home, 'wallbox')).toMatchObject({ id, portal: 'other' });
  expect(await home.run.store.grant(id)).toEqual(before);
});

test('the hub serves declared appliances while the store is unwritable, and saves them at a later start', async () => {
  await using home = await BrokerHarness.start();
  await declare(home, WALLBOX, { ...WALLBOX, name: 'gone', clientId: 'gone' });
  home.failingWrites.add('addAppliance').add('updateAppliance');
  const credentials = { kind: 'secret', hash: 'another-hash' } as const;
  const heater = { ...WALLBOX, name: 'heater', clientId: 'heater' };
  await declare(home, { ...WALLBOX, credentials }, heater);
  expect(home.run.appliances.byClientId('wallbox')).toMatchObject({ credentials });
  expect(home.run.appliances.byClientId('heater')).toMatchObject({ origin: 'declared' });
  expect(home.run.appliances.byClientId('gone')).toMatchObject({ credentials: { kind: 'none' } });
  home.failingWrites.clear();
  home.declared = [WALLBOX];
  await restart(home);
  expect(home.run.appliances.byClientId('heater')).toBeUndefined();
  await declare(home, { ...WALLBOX, credentials }, heater);
  await restart(home);
  expect(home.run.appliances.byClientId('wallbox')).toMatchObject({ credentials });
  expect(home.run.appliances.byClientId('heater')).toMatchObject({ origin: 'declared' });
});

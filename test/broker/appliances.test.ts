import { expect, test } from 'vitest';
import { Appliances } from '../../src/broker/appliances/appliances.ts';
import type { Appliance } from '../../src/core/appliances/appliance.ts';
import { systemRandom } from '../../src/system/random.ts';
import { sha256 } from '../../src/system/secret-hash.ts';
import { BrokerHarness } from './broker-harness.ts';

/** The stored hash of an appliance's secret; `none` without a secret. */
function secretOf(appliance: Appliance | undefined): string {
  return appliance?.credentials.kind === 'secret' ? appliance.credentials.hash : 'none';
}

test("the hub keeps only the hash of an appliance's secret, which it shows once, also after a restart", async () => {
  const harness = await BrokerHarness.start();
  const { appliance, secret } = await harness.addAppliance('wallbox', ' RemoteControl  Monitoring ');
  expect(appliance).toMatchObject({
    name: 'wallbox',
    clientId: appliance.id,
    connection: appliance.id,
    origin: 'added',
    waiting: null,
  });
  expect(harness.connection('wallbox')).toEqual({
    id: appliance.id,
    name: 'wallbox',
    title: 'wallbox',
    scope: 'RemoteControl Monitoring',
    portal: 'home',
    origin: 'implicit',
  });
  expect(secret.reveal()).toHaveLength(43);
  expect(secretOf(harness.run.appliances.byClientId(appliance.clientId))).toBe(sha256(secret.reveal()));
  const { appliances } = await harness.restart();
  expect(appliances.byClientId(appliance.clientId)).toEqual(appliance);
  expect(JSON.stringify(appliances.list())).not.toContain(secret.reveal());
});

test("a rotated secret replaces the appliance's previous secret, also after a restart", async () => {
  const { harness, appliance, secret } = await BrokerHarness.startUnpaired();
  const rotated = await harness.run.appliances.rotateSecret(appliance);
  expect(rotated.secret.reveal()).not.toBe(secret.reveal());
  expect(secretOf(harness.run.appliances.byClientId(appliance.clientId))).toBe(sha256(rotated.secret.reveal()));
  const { appliances } = await harness.restart();
  expect(secretOf(appliances.byClientId(appliance.clientId))).toBe(sha256(rotated.secret.reveal()));
});

test('requests that the hub refuses are counted and logged anew when the appliance has got another secret', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { refusedRequests, appliances } = harness.run;
  const refuse = () => refusedRequests.record(appliances.get('wallbox'), 'the secret is wrong', '192.168.1.23');
  const logged = () =>
    harness.events.flatMap(({ event, fields }) => (event === 'appliance_refused' ? [fields['count']] : []));
  refuse();
  refuse();
  expect(logged()).toEqual([1]);
  await appliances.rotateSecret(appliance);
  refuse();
  expect(refusedRequests.of(appliances.get('wallbox'))?.count).toBe(1);
  expect(logged()).toEqual([1, 1]);
});

test('a removed appliance is unknown to the hub, and its name is free for another appliance', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  await harness.run.appliances.remove(appliance);
  expect(harness.run.appliances.byClientId(appliance.clientId)).toBeUndefined();
  expect(() => harness.run.appliances.get('wallbox')).toThrow(expect.objectContaining({ code: 'appliance_unknown' }));
  await expect(harness.run.appliances.rotateSecret(appliance)).rejects.toMatchObject({ code: 'appliance_unknown' });
  const again = await harness.addAppliance('wallbox');
  expect(again.appliance.id).not.toBe(appliance.id);
});

test.each([
  ['wallbox', null, null, 'appliance_exists'],
  ['Wallbox', null, null, 'appliance_exists'],
  ['a\nb', null, null, 'name_invalid'],
  ['heater', 'a"b', null, 'scope_invalid'],
  ['heater', null, 'nowhere', 'portal_unknown'],
])('the hub does not add appliance %s with scope %s at portal %s: %s', async (name, scope, portal, code) => {
  const { harness } = await BrokerHarness.startUnpaired();
  await expect(harness.run.appliances.add(name, { connections: [], scope, portal })).rejects.toMatchObject({ code });
  expect(harness.run.appliances.list()).toHaveLength(1);
});

test('an appliance is called what stands on its cabinet, its name is made from that, and people may use either', async () => {
  const harness = await BrokerHarness.start();
  const choice = { connections: [], scope: null, portal: null };
  const title = 'Wärmepumpe Keller';
  const { appliance } = await harness.run.appliances.add(` ${title} `, choice);
  expect(appliance).toMatchObject({ name: 'waermepumpe-keller', title });
  expect(harness.run.connections.list()).toMatchObject([{ name: 'waermepumpe-keller', title }]);
  const { appliances, connections } = await harness.restart();
  for (const typed of [title, 'waermepumpe-keller']) {
    expect(appliances.get(typed)).toEqual(appliance);
    expect(connections.get(typed)).toMatchObject({ id: appliance.connection });
  }
  const names = [];
  for (const typed of ['洗濯機', '冷蔵庫']) names.push((await appliances.add(typed, choice)).appliance.name);
  expect(names).toEqual(['appliance', 'appliance-2']);
  await expect(appliances.add('冷蔵庫', choice)).rejects.toMatchObject({ code: 'appliance_exists' });
});

test('only one appliance is added when several are added under one name at the same time', async () => {
  const harness = await BrokerHarness.start();
  const results = await Promise.allSettled([
    harness.addAppliance('wallbox'),
    harness.addAppliance('wallbox'),
    harness.addAppliance('wallbox'),
  ]);
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(harness.run.appliances.list()).toHaveLength(1);
});

test('a shared connection that is removed while an appliance is added to it does not come back', async () => {
  const harness = await BrokerHarness.start();
  const { appliances, connections } = harness.run;
  const shared = await connections.add('shared', null, null);
  const choice = { connections: ['shared'], scope: null, portal: null };
  const [, added] = await Promise.allSettled([appliances.removeConnection(shared), appliances.add('wallbox', choice)]);
  expect(added).toMatchObject({ reason: { code: 'connection_unknown' } });
  expect([connections.list(), appliances.list()]).toEqual([[], []]);
});

test('two changes to one appliance at the same time both take effect', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { appliances } = harness.run;
  const [rotated] = await Promise.all([
    appliances.rotateSecret(appliance),
    appliances.update(appliance.id, (current) => ({ ...current, softwareId: 'charger/2' })),
  ]);
  const now = appliances.byId(appliance.id);
  expect(now).toMatchObject({ softwareId: 'charger/2' });
  expect(secretOf(now)).toBe(sha256(rotated.secret.reveal()));
});

test('the hub refuses to remove or move a declared appliance, or to rotate its secret', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { appliances } = harness.run;
  const declared = await appliances.update(appliance.id, (current) => ({ ...current, origin: 'declared' }));
  const refusal = { code: 'appliance_declared', message: expect.stringContaining('[appliances.wallbox]') };
  await expect(appliances.remove(declared)).rejects.toMatchObject(refusal);
  await expect(appliances.rotateSecret(declared)).rejects.toMatchObject(refusal);
  const moving = appliances.move(declared, [await harness.addConnection('shared')], async () => false);
  await expect(moving).rejects.toMatchObject(refusal);
  expect(appliances.list()).toEqual([declared]);
});

test('adding an appliance under the name of a declared one fails and names its configuration table', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { appliances } = harness.run;
  await appliances.update(appliance.id, (current) => ({ ...current, origin: 'declared' }));
  const message = expect.stringMatching(/declared in the hub.s configuration, in the table \[appliances\.wallbox\]/);
  await expect(appliances.add('wallbox', { connections: [], scope: null, portal: null })).rejects.toMatchObject({
    code: 'appliance_exists',
    message,
  });
});

test('rotating the secret of an appliance that has keys fails unless replacing the keys is allowed', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const { appliances } = harness.run;
  const credentials = { kind: 'keys', keys: [{ kty: 'EC' }] } as const;
  const keyed = await appliances.update(appliance.id, (current) => ({ ...current, credentials }));
  const refusal = { code: 'appliance_has_keys', message: expect.stringContaining('authenticates with a key') };
  await expect(appliances.rotateSecret(keyed)).rejects.toMatchObject(refusal);
  expect(appliances.byId(keyed.id)?.credentials).toEqual(credentials);
  const { secret } = await appliances.rotateSecret(keyed, true);
  expect(secretOf(appliances.byId(keyed.id))).toBe(sha256(secret.reveal()));
});

test('the list of appliances stays as it was when the store cannot save a change', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  for (const write of ['registry.save'] as const) harness.failingWrites.add(write);
  await expect(
    harness.run.appliances.add('heater', { connections: [], scope: null, portal: null }),
  ).rejects.toMatchObject({ code: 'store_unwritable' });
  await expect(harness.run.appliances.rotateSecret(appliance)).rejects.toMatchObject({ code: 'store_unwritable' });
  await expect(harness.run.appliances.remove(appliance)).rejects.toMatchObject({ code: 'store_unwritable' });
  expect(harness.run.appliances.list()).toEqual([appliance]);
});

test('the hub holds at most 1,000 appliances', async () => {
  const { harness, appliance } = await BrokerHarness.startUnpaired();
  const ids = Array.from({ length: 1000 }, (_, index) => `appliance-${index}`);
  const full = ids.map((id) => ({ ...appliance, id, clientId: id, name: id }));
  harness.run.store.registry.appliances = async () => full;
  const appliances = await Appliances.load(harness.run.store, systemRandom, harness.run.connections);
  await expect(appliances.add('heater', { connections: [], scope: null, portal: null })).rejects.toMatchObject({
    code: 'not_allowed',
  });
  await appliances.remove(appliances.get('appliance-7'));
  await appliances.add('heater', { connections: [], scope: null, portal: null });
  expect(appliances.list()).toHaveLength(1000);
});

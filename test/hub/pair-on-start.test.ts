import { expect, test } from 'vitest';
import { hasScopeChanged } from '../../src/core/grants/grant.ts';
import { pairOnStart } from '../../src/hub/pair-on-start.ts';
import { BrokerHarness } from '../broker/broker-harness.ts';
import { logTo } from '../support/log-to.ts';

/** Declares the connection of an appliance, with this scope. */
async function declare(home: BrokerHarness, name: string, scope: string): Promise<void> {
  const declared = { ...home.connection(name), scope, origin: 'declared' } as const;
  expect(await home.run.connections.save(() => ({ updatedConnections: [declared] }))).toBe(true);
}

/** Does what a start with `pairing.on_start` does. @returns the links in the log, by connection */
async function start(home: BrokerHarness): Promise<Record<string, string>> {
  const { connections, appliances, grants, pairings } = home.run;
  const links: Record<string, string> = {};
  const log = logTo((event, { connection, authorize_url }) => {
    if (event === 'login_link_created') links[String(connection)] = String(authorize_url);
  });
  await pairOnStart(connections, appliances, grants, pairings, log);
  await home.time.settle();
  return links;
}

test('at its start the hub pairs each unpaired appliance, except one that waits for approval', async () => {
  await using home = await BrokerHarness.start();
  await home.addPairedAppliance('paired');
  await home.addAppliance('wallbox');
  home.run.registrations.setOpenFor(60_000);
  await home.run.registrations.register(
    { clientName: 'lamp', scope: null, softwareId: null, keys: [] },
    null,
    'a-device',
  );
  const links = await start(home);
  expect(Object.keys(links)).toEqual(['wallbox']);
  expect(links['wallbox']).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/.*state=/);
  expect(home.run.pairings.newestFor(home.run.appliances.get('lamp').id)).toBeUndefined();
});

test('at its start the hub does not pair an appliance with a suspended grant', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox');
  await home.stop();
  home.identity = { origin: 'https://other.example', clientId: 'another-client' };
  await home.start();
  expect(home.run.grants.getSuspended(id)).toBeDefined();
  expect(await start(home)).toEqual({});
});

test('at its start the hub continues an open pairing, unless another scope is declared now', async () => {
  await using home = await BrokerHarness.start();
  const { appliance } = await home.addAppliance('wallbox', 'Monitoring');
  const before = await home.beginPairing('wallbox');
  await declare(home, 'wallbox', 'Monitoring');
  await start(home);
  expect(home.run.pairings.newestFor(appliance.id)?.pairing.id).toBe(before.pairing.id);
  await declare(home, 'wallbox', 'RemoteControl');
  expect(Object.keys(await start(home))).toEqual(['wallbox']);
  expect(home.run.pairings.newestFor(appliance.id)?.pairing).toMatchObject({ scope: 'RemoteControl' });
  expect(before.pairing.step).toMatchObject({ result: { reason: 'replaced' } });
});

test('at its start the hub pairs again if the declared scope differs from that of the grant', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance('wallbox', 'A B');
  await declare(home, 'wallbox', 'B A');
  expect(await start(home)).toEqual({});
  await declare(home, 'wallbox', 'A');
  expect(Object.keys(await start(home))).toEqual(['wallbox']);
  expect(await home.whoami(await home.token(id))).toBe(200);
});

test.each([
  ['declared', 'A', { requestedScope: 'A' }, false],
  ['declared', 'A', { requestedScope: 'A B' }, true],
  ['declared', null, { requestedScope: null }, false],
  ['declared', 'A', { requestedScope: null }, true],
  ['added', 'A', { requestedScope: 'B' }, false],
  ['implicit', 'A', { requestedScope: 'B' }, false],
  ['declared', 'A', undefined, false],
] as const)(
  'a connection that is %s with scope %s and has a grant of %o needs another pairing: %s',
  (origin, scope, grant, expected) => {
    expect(hasScopeChanged({ origin, scope }, grant)).toBe(expected);
  },
);

test('at its start the hub makes one link for a connection that several appliances share', async () => {
  await using home = await BrokerHarness.start();
  await home.run.connections.add('family', null, null);
  await home.addUser('thermostat', 'family');
  await home.addUser('dashboard', 'family');
  expect(Object.keys(await start(home))).toEqual(['family']);
});

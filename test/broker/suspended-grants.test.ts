import { expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf } from './broker-services.ts';

const OTHER = { origin: 'https://other.example', clientId: 'another-client' };

/** Restarts the hub with this portal in its configuration; null: the emulator's. */
async function restartWithPortal(harness: BrokerHarness, identity: BrokerHarness['identity']): Promise<void> {
  await harness.stop();
  harness.identity = identity;
  await harness.start();
}

async function storedGrant(harness: BrokerHarness, id: string) {
  const found = await harness.run.store.grants.get(id);
  if (found === null) throw new Error('there is no grant');
  return found.grant;
}

test.each([
  [
    'table and origin',
    (harness: BrokerHarness) => ({ origin: OTHER.origin, clientId: harness.emulator.clientId, name: 'cloud' }),
  ],
  [
    'origin, while its own one belongs to another table',
    (harness: BrokerHarness) => ({
      origin: OTHER.origin,
      clientId: harness.emulator.clientId,
      otherOrigins: [harness.portal.frontendUrl],
    }),
  ],
  ['client_id', (harness: BrokerHarness) => ({ origin: harness.portal.frontendUrl, clientId: OTHER.clientId })],
])(
  'a grant of a portal with another %s is suspended and works again once that portal is configured',
  async (_, other) => {
    const { harness, id } = await BrokerHarness.startPaired();
    const before = await storedGrant(harness, id);
    const token = await harness.token(id);
    await restartWithPortal(harness, other(harness));
    expect(harness.events.at(-1)).toMatchObject({ event: 'grant_suspended' });
    expect(await harness.token(id)).toBe('not_paired');
    expect(harness.run.grants.getSuspended(id)).toMatchObject({ generation: before.generation });
    await harness.run.grants.refresh(id);
    await harness.run.grants.reportRejectedToken(id, token);
    harness.run.grants.onClockSet();
    await harness.time.pass(3 * 3_600_000);
    expect(await harness.token(id)).toBe('not_paired');
    expect(harness.refreshes).toBe(0);
    await restartWithPortal(harness, null);
    expect(harness.run.grants.getSuspended(id)).toBeUndefined();
    expect(await storedGrant(harness, id)).toEqual(before);
    expect(await harness.whoami(await harness.token(id))).toBe(200);
  },
);

test("a grant stays in use when its portal's table has a new address, and adopts it at the next refresh", async () => {
  const { harness, id } = await BrokerHarness.startPaired();
  await restartWithPortal(harness, { origin: OTHER.origin, clientId: harness.emulator.clientId });
  expect(harness.run.grants.getSuspended(id)).toBeUndefined();
  expect(await harness.whoami(await harness.token(id))).toBe(200);
  await harness.untilRefreshed();
  expect(await storedGrant(harness, id)).toMatchObject({ issuer: { origin: OTHER.origin, name: 'home' } });
});

test('a new pairing replaces a suspended grant, and unpairing deletes one', async () => {
  const harness = await BrokerHarness.start();
  const [wallbox, heater] = [await harness.addPairedAppliance('wallbox'), await harness.addPairedAppliance('heater')];
  const { generation } = await storedGrant(harness, wallbox);
  await restartWithPortal(harness, OTHER);
  await harness.pairAgain('wallbox');
  expect(await storedGrant(harness, wallbox)).toMatchObject({ generation: generation + 1, issuer: OTHER });
  expect(await harness.whoami(await harness.token(wallbox))).toBe(200);
  await harness.untilRefreshed();
  expect(await storedGrant(harness, wallbox)).toMatchObject({ generation: generation + 2, issuer: OTHER });
  expect(await administrationOf(harness).unpair('heater')).toBe(false);
  expect(harness.run.grants.getSuspended(heater)).toBeUndefined();
  expect(await harness.run.store.grants.get(heater)).toBeNull();
});

import { expect, test } from 'vitest';
import { BrokerHarness } from './broker-harness.ts';

const OTHER = { origin: 'https://other.example', clientId: 'another-client' };

/** Starts the hub again, with this portal in its configuration; null: the one that is there. */
async function goTo(home: BrokerHarness, identity: BrokerHarness['identity']): Promise<void> {
  await home.stop();
  home.identity = identity;
  await home.start();
}

async function stored(home: BrokerHarness, id: string) {
  const found = await home.run.store.grant(id);
  if (found === null) throw new Error('there is no grant');
  return found.grant;
}

test.each([
  [
    'table and origin',
    (home: BrokerHarness) => ({ origin: OTHER.origin, clientId: home.emulator.clientId, name: 'cloud' }),
  ],
  [
    'origin, while its own one belongs to another table',
    (home: BrokerHarness) => ({
      origin: OTHER.origin,
      clientId: home.emulator.clientId,
      otherOrigins: [home.portal.frontendUrl],
    }),
  ],
  ['client_id', (home: BrokerHarness) => ({ origin: home.portal.frontendUrl, clientId: OTHER.clientId })],
])(
  'a grant of a portal with another %s is suspended and works again once that portal is configured',
  async (_, other) => {
    await using home = await BrokerHarness.start();
    const id = await home.addPairedAppliance();
    const before = await stored(home, id);
    const token = await home.token(id);
    await goTo(home, other(home));
    expect(home.events.at(-1)).toMatchObject({ event: 'grant_suspended' });
    expect(await home.token(id)).toBe('not_paired');
    expect(home.run.grants.getSuspended(id)).toMatchObject({ generation: before.generation });
    await home.run.grants.refresh(id);
    await home.run.grants.reportRejectedToken(id, token);
    home.run.grants.onClockSet();
    await home.time.pass(3 * 3_600_000);
    expect(await home.token(id)).toBe('not_paired');
    expect(home.refreshes).toBe(0);
    await goTo(home, null);
    expect(home.run.grants.getSuspended(id)).toBeUndefined();
    expect(await stored(home, id)).toEqual(before);
    expect(await home.whoami(await home.token(id))).toBe(200);
  },
);

test("a grant stays in use when its portal's table has a new address, and adopts it at the next refresh", async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  await goTo(home, { origin: OTHER.origin, clientId: home.emulator.clientId });
  expect(home.run.grants.getSuspended(id)).toBeUndefined();
  expect(await home.whoami(await home.token(id))).toBe(200);
  await home.untilRefreshed();
  expect(await stored(home, id)).toMatchObject({ issuer: { origin: OTHER.origin, name: 'home' } });
});

test('a new pairing replaces a suspended grant, and unpairing deletes one', async () => {
  await using home = await BrokerHarness.start();
  const [wallbox, heater] = [await home.addPairedAppliance('wallbox'), await home.addPairedAppliance('heater')];
  const { generation } = await stored(home, wallbox);
  await goTo(home, OTHER);
  await home.pairAgain('wallbox');
  expect(await stored(home, wallbox)).toMatchObject({ generation: generation + 1, issuer: OTHER });
  expect(await home.whoami(await home.token(wallbox))).toBe(200);
  await home.untilRefreshed();
  expect(await stored(home, wallbox)).toMatchObject({ generation: generation + 2, issuer: OTHER });
  await home.run.grants.delete(heater);
  expect(home.run.grants.getSuspended(heater)).toBeUndefined();
  expect(await home.run.store.grant(heater)).toBeNull();
});

test('a grant stores its issuer, whose client_id is compared without regard to case', async () => {
  await using home = await BrokerHarness.start();
  const id = await home.addPairedAppliance();
  const { origin, clientId } = { origin: home.portal.frontendUrl, clientId: home.emulator.clientId };
  expect(await stored(home, id)).toMatchObject({ issuer: { origin, clientId, name: 'home' } });
  await goTo(home, { origin, clientId: clientId.toUpperCase() });
  expect(home.run.grants.getSuspended(id)).toBeUndefined();
});

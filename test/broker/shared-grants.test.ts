// One grant that several appliances use, in virtual time, on a real store and with a real emulator as the portal.
import { describe, expect, test } from 'vitest';
import { MINUTE } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf, lanServiceOf, requestToken } from './broker-services.ts';

const USERS = ['dashboard', 'heater', 'thermostat'];

/** A broker with a paired connection that three appliances use. */
async function startShared(): Promise<BrokerHarness> {
  const harness = await BrokerHarness.start();
  await harness.addConnection('shared');
  for (const name of USERS) await harness.addUser(name, 'shared');
  await harness.pairAgain('shared');
  return harness;
}

const tokensOf = (harness: BrokerHarness) => Promise.all(USERS.map((name) => requestToken(harness, name)));

test('one login connects all appliances of a connection, and they get the same token', async () => {
  const harness = await startShared();
  const tokens = await tokensOf(harness);
  expect(new Set(tokens).size).toBe(1);
  expect(await harness.whoami(tokens[0] ?? '')).toBe(200);
  expect(harness.emulator.grants()).toHaveLength(1);
  expect(harness.exchanges).toBe(1);
  expect(await harness.run.store.grants.all()).toHaveLength(1);
});

test('an appliance of another connection cannot report a token of this one', async () => {
  const harness = await startShared();
  await harness.addPairedAppliance('wallbox');
  const [token = ''] = await tokensOf(harness);
  await lanServiceOf(harness).revoke(harness.run.appliances.get('wallbox'), token);
  await harness.time.pass(MINUTE);
  expect(new Set(await tokensOf(harness))).toEqual(new Set([token]));
  expect(harness.refreshes).toBe(0);
});

describe('appliance of a shared connection', () => {
  test('removing an appliance or rotating its secret does not affect the connection and the others', async () => {
    const harness = await startShared();
    const administration = administrationOf(harness);
    const [token] = await tokensOf(harness);
    const before = await harness.run.store.grants.all();
    await administration.removeAppliance('dashboard');
    await administration.rotateSecret('heater', false);
    expect(await Promise.all(['heater', 'thermostat'].map((name) => requestToken(harness, name)))).toEqual([
      token,
      token,
    ]);
    expect(await harness.run.store.grants.all()).toEqual(before);
    expect(administration.connectionStatusOf(harness.connection('shared'))).toMatchObject({
      state: 'active',
      users: ['heater', 'thermostat'].map((name) => ({ name, title: name })),
    });
    for (const name of ['heater', 'thermostat']) await administration.removeAppliance(name);
    expect(await harness.token(harness.connection('shared').id)).toBe(token);
    await harness.restart();
    expect(await harness.token(harness.connection('shared').id)).toBe(token);
  });

  test('unpairing a connection ends the sessions of its appliances, and leaves their credentials as they are', async () => {
    const harness = await startShared();
    const credentials = harness.run.appliances.list();
    const sessions = await Promise.all(
      credentials.map(async ({ id }) => ({
        id,
        token: (await harness.run.sessions.create(id, `a flow of ${id}`, harness.connection('shared').id)).reveal(),
      })),
    );
    rememberSecrets(sessions.map(({ token }) => token));
    await administrationOf(harness).unpair('shared');
    expect(sessions.map(({ id, token }) => harness.run.sessions.find(id, token))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(await tokensOf(harness)).toEqual(['not_paired', 'not_paired', 'not_paired']);
    expect(harness.run.appliances.list()).toEqual(credentials);
    expect(await harness.run.store.grants.all()).toEqual([]);
    expect(harness.emittedEvents.filter(({ kind }) => kind === 'unpaired')).toMatchObject([
      { connection: harness.connection('shared').id },
    ]);
    await harness.pairAgain('shared');
    expect(new Set(await tokensOf(harness)).size).toBe(1);
  });
});

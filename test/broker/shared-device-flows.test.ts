// Device flows of appliances that use one connection, in virtual time, with a real emulator as the portal.
import { describe, expect, test } from 'vitest';
import type { DeviceAuthorization } from '../../src/core/lan-service.ts';
import { SECOND } from '../core/samples.ts';
import { BrokerHarness } from './broker-harness.ts';
import { administrationOf, lanServiceOf, requestToken } from './broker-services.ts';
import { beginFlow, expectPairedByPolling, logInAt, openFlow, pollFlow } from './logins.ts';

/** A broker with a connection that two appliances use; nobody has logged in. */
async function startShared(): Promise<BrokerHarness> {
  const harness = await BrokerHarness.start();
  await harness.addConnection('shared');
  for (const name of ['dashboard', 'heater']) await harness.addUser(name, 'shared');
  return harness;
}

/** A person opens the page, continues, and logs in. */
async function logIn(harness: BrokerHarness, flow: DeviceAuthorization): Promise<void> {
  await logInAt(harness, await openFlow(harness, flow));
  await harness.time.pass(10 * SECOND);
}

const poll = (harness: BrokerHarness, name: string, flow: DeviceAuthorization) =>
  pollFlow(harness, harness.run.appliances.get(name).id, flow);

const isKnown = (harness: BrokerHarness, { userCode }: DeviceAuthorization) =>
  harness.run.deviceFlows.findByUserCode(userCode) !== null;

describe('device flows of two appliances of one connection', () => {
  test('two appliances of one connection can have device flows at once, each with its own codes', async () => {
    const harness = await startShared();
    const [first, second] = [await beginFlow(harness, 'dashboard'), await beginFlow(harness, 'heater')];
    expect(first.userCode).not.toBe(second.userCode);
    expect([poll(harness, 'dashboard', first), poll(harness, 'heater', second)]).toEqual(['pending', 'pending']);
    expect([poll(harness, 'heater', first), poll(harness, 'dashboard', second)]).toEqual(['unknown', 'unknown']);
    expect(harness.portal.recordedRequests).toEqual([]);
    await harness.restart();
    expect([poll(harness, 'dashboard', first), poll(harness, 'heater', second)]).toEqual(['pending', 'pending']);
    expect([isKnown(harness, first), isKnown(harness, second)]).toEqual([true, true]);
  });

  test('the login of one device flow connects both appliances, but ends only its own flow', async () => {
    const harness = await startShared();
    const [first, second] = [await beginFlow(harness, 'dashboard'), await beginFlow(harness, 'heater')];
    await logIn(harness, first);
    expect([poll(harness, 'dashboard', first), poll(harness, 'heater', second)]).toEqual(['paired', 'pending']);
    const token = await requestToken(harness, 'dashboard');
    expect(await harness.whoami(token)).toBe(200);
    expect(await requestToken(harness, 'heater')).toBe(token);
    // The second flow can still lead to a login of its own, which replaces the first.
    await logIn(harness, second);
    expect(poll(harness, 'heater', second)).toBe('paired');
    expect(await requestToken(harness, 'dashboard')).toBe(await requestToken(harness, 'heater'));
    expect(await harness.run.store.grants.all()).toHaveLength(1);
  });

  test('a new device flow replaces only that of the same appliance', async () => {
    const harness = await startShared();
    const [first, other] = [await beginFlow(harness, 'dashboard'), await beginFlow(harness, 'heater')];
    const again = await beginFlow(harness, 'dashboard');
    expect(poll(harness, 'dashboard', first)).toBe('replaced');
    expect([poll(harness, 'dashboard', again), poll(harness, 'heater', other)]).toEqual(['pending', 'pending']);
  });

  test('a pairing by an installer ends the newest flow, and the other one waits on', async () => {
    const harness = await startShared();
    const [first, second] = [await beginFlow(harness, 'dashboard'), await beginFlow(harness, 'heater')];
    const run = await harness.beginPairing('shared');
    await expectPairedByPolling(harness, run);
    expect([poll(harness, 'dashboard', first), poll(harness, 'heater', second)]).toEqual(['pending', 'paired']);
  });

  test('unpairing a connection ends the device flows of all its appliances', async () => {
    const harness = await startShared();
    const [first, second] = [await beginFlow(harness, 'dashboard'), await beginFlow(harness, 'heater')];
    await administrationOf(harness).unpair('shared');
    expect([poll(harness, 'dashboard', first), poll(harness, 'heater', second)]).toEqual(['cancelled', 'cancelled']);
  });

  test.each(['removed', 'moved'] as const)(
    'the device flow of an appliance that is %s ends, and no other',
    async (how) => {
      const harness = await startShared();
      const [first, second] = [await beginFlow(harness, 'dashboard'), await beginFlow(harness, 'heater')];
      await harness.addConnection('another');
      if (how === 'removed') await administrationOf(harness).removeAppliance('dashboard');
      else {
        await administrationOf(harness).moveAppliance('dashboard', ['another']);
        expect(poll(harness, 'dashboard', first)).toBe('cancelled');
      }
      await expect(logIn(harness, first)).rejects.toThrow('not opened: over');
      expect(poll(harness, 'heater', second)).toBe('pending');
      await logIn(harness, second);
      expect(await harness.whoami(await requestToken(harness, 'heater'))).toBe(200);
    },
  );
});

describe('device flow of an appliance whose connection is paired', () => {
  /** The second appliance begins a device flow when the first one has led to a login. */
  async function startPaired() {
    const harness = await startShared();
    await logIn(harness, await beginFlow(harness, 'dashboard'));
    return { harness, flow: await beginFlow(harness, 'heater'), before: harness.portal.recordedRequests.length };
  }

  test('an installer approves the appliance without a login, and its next poll says so, also after a restart', async () => {
    const { harness, flow, before } = await startPaired();
    expect(await lanServiceOf(harness).findPairingByUserCode(flow.userCode)).toMatchObject({
      connection: 'shared',
      appliance: { name: 'heater', title: 'heater' },
      users: ['dashboard', 'heater'].map((name) => ({ name, title: name })),
      isApprovable: true,
      needsInstaller: true,
    });
    expect(poll(harness, 'heater', flow)).toBe('pending');
    await lanServiceOf(harness).approveDeviceFlow(flow.userCode);
    expect(poll(harness, 'heater', flow)).toBe('paired');
    expect(harness.events.findLast(({ event }) => event === 'device_flow_approved')?.fields).toEqual({
      appliance: 'heater',
      connection: 'shared',
    });
    await harness.restart();
    expect(poll(harness, 'heater', flow)).toBe('paired');
    expect(await harness.whoami(await requestToken(harness, 'heater'))).toBe(200);
    expect(harness.portal.recordedRequests).toHaveLength(before);
    expect(harness.emittedEvents.filter(({ kind }) => kind === 'paired')).toHaveLength(1);
  });

  test('an installer refuses the appliance, and the connection stays as it is', async () => {
    const { harness, flow } = await startPaired();
    const token = await requestToken(harness, 'dashboard');
    await lanServiceOf(harness).refuseDeviceFlow(flow.userCode);
    expect(poll(harness, 'heater', flow)).toBe('refused_by_user');
    expect(await requestToken(harness, 'dashboard')).toBe(token);
    await lanServiceOf(harness).approveDeviceFlow(flow.userCode);
    expect(poll(harness, 'heater', flow)).toBe('refused_by_user');
  });

  test('an approval with a replaced user code, or of an unpaired connection, changes nothing', async () => {
    const { harness, flow } = await startPaired();
    const again = await beginFlow(harness, 'heater');
    await lanServiceOf(harness).approveDeviceFlow(flow.userCode);
    expect([poll(harness, 'heater', flow), poll(harness, 'heater', again)]).toEqual(['replaced', 'pending']);
    await administrationOf(harness).unpair('shared');
    const last = await beginFlow(harness, 'heater');
    expect(await lanServiceOf(harness).findPairingByUserCode(last.userCode)).toMatchObject({
      isApprovable: false,
      needsInstaller: false,
    });
    await lanServiceOf(harness).approveDeviceFlow(last.userCode);
    expect(poll(harness, 'heater', last)).toBe('pending');
  });

  test('only an installer may log in while the grant of the others is in use, also if another scope is wanted by now', async () => {
    const { harness, flow } = await startPaired();
    const connection = harness.run.connections.get('shared');
    await harness.run.connections.save(() => ({
      updatedConnections: [{ ...connection, scope: 'RemoteControl', origin: 'declared' }],
    }));
    expect(await lanServiceOf(harness).findPairingByUserCode(flow.userCode)).toMatchObject({
      isApprovable: false,
      needsInstaller: true,
    });
  });

  test('an approval that cannot be saved fails, and the appliance waits on', async () => {
    const { harness, flow } = await startPaired();
    harness.failingWrites.add('pairings.save');
    await expect(lanServiceOf(harness).approveDeviceFlow(flow.userCode)).rejects.toMatchObject({
      code: 'store_unwritable',
    });
    expect(poll(harness, 'heater', flow)).toBe('pending');
    harness.failingWrites.clear();
    await lanServiceOf(harness).approveDeviceFlow(flow.userCode);
    expect(poll(harness, 'heater', flow)).toBe('paired');
  });
});

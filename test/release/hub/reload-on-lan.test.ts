import { expect, it } from 'vitest';
import { logIn } from '../../netns/hub-on-host.ts';
import { OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { PortalOnHost } from '../../netns/portal-on-host.ts';
import { startRefresh } from '../../reliability/fleet.ts';
import { eventually, HubProcess } from '../../support/hub-process.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { slowStoreEnv } from '../../support/slow-store.ts';

skipIfUnavailable(() => lanSkipReason([...OBSERVER_TOOLS, '/usr/bin/curl']));

it('the hub sends a goodbye if it is stopped while a reload waits for the portal', async () => {
  await using lan = await createLan(['hub', 'peer']);
  const machine = lan.hosts.hub;
  const emulator = await PortalOnHost.start(machine);
  await using hub = await HubProcess.start({
    emulator,
    env: { LATCHKEY_LAN_ADDRESS: 'auto', LATCHKEY_LAN_LISTEN: '0.0.0.0', ...slowStoreEnv() },
    within: ['/usr/sbin/ip', 'netns', 'exec', machine.namespace],
  });
  const observer = await observeWithZeroconf(lan.hosts.peer);
  const { instanceName } = await observer.found();
  await hub.addAppliance('wallbox');
  await logIn(machine, await hub.beginPairing('wallbox'));
  await eventually(async () => (await hub.appliance('wallbox')).state === 'active');

  await hub.ask((control) => control.request('reload'));
  await eventually(async () => hub.events('hub_announced').length === 2);
  expect(observer.losses()).toEqual([]);

  await emulator.sendCommand('POST', 'faults', { endpoint: 'token', kind: 'delay', seconds: 4 });
  startRefresh(hub, 'wallbox');
  await eventually(async () => (await emulator.ask('/_emulator/requests')).includes('refresh_token'));
  await hub.ask((control) => control.request('reload'));
  await eventually(async () => hub.events('configuration_reloading').length === 2);
  await hub.kill('SIGTERM');
  await observer.gone(instanceName);
});

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { knowing, NAME, PortalHost, pair, statusOf } from '../chaos/cut-off.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { createLan, whyNoLan } from '../support/netns.ts';
import { needs } from '../support/set-up.ts';
import { stateFolder } from '../support/state-folder.ts';

const APPLIANCES = ['wallbox', 'heater'];

needs(() => whyNoLan(['/usr/bin/curl']));

it('a hub that starts without a network, and then has one without names, comes right by itself and says what it waits for', async () => {
  await using lan = await createLan(['hub', 'portal']);
  const { hub: machine, portal: other } = lan.hosts;
  using folder = stateFolder();
  const hosts = join(folder.path, 'hosts');
  const withoutNames = '127.0.0.1 localhost\n';
  const withNames = `${withoutNames}${other.address} ${NAME}\n`;
  writeFileSync(hosts, withNames);
  writeFileSync(join(folder.path, 'known'), withNames);
  const portal = new PortalHost(other, folder.path);
  const emulator = await portal.start('mine');
  await using hub = await HubProcess.start({
    emulator,
    portal: `ca_file = "${portal.caFile}"`,
    env: { LATCHKEY_LAN_ADDRESS: 'auto', LATCHKEY_LAN_LISTEN: '0.0.0.0' },
    within: knowing(hosts, machine, folder.path),
  });
  for (const name of APPLIANCES) await pair(hub, machine, name);
  await hub.kill('SIGTERM');

  await machine.run('ip', ['addr', 'flush', 'dev', 'eth0']);
  writeFileSync(hosts, withoutNames);
  await hub.launch();
  const { pid } = hub;
  const waiting = () =>
    eventually(async () => {
      const all = await statusOf(hub);
      return all.every(({ problem }) => problem?.code === 'portal_unreachable') && all;
    }, 30);
  for (const { problem } of await waiting()) expect(problem?.message).toContain(NAME);
  expect((await hub.status()).hub.address).toBeNull();

  await sleep(5000);
  await machine.run('ip', ['addr', 'add', `${machine.address}/24`, 'dev', 'eth0']);
  await eventually(async () => (await hub.status()).hub.address === machine.address);
  await sleep(5000);
  for (const { problem } of await waiting()) expect(problem?.message).toContain(NAME);

  writeFileSync(hosts, withNames);
  await eventually(async () => (await statusOf(hub)).every(({ state }) => state === 'active'), 30);
  expect(hub.pid).toBe(pid);
  expect(hub.ended).toBeNull();
  const events = hub.events().map(({ event }) => event);
  expect(events).toContain('portal serves again');
  expect(events.length, events.join(', ')).toBeLessThanOrEqual(10 + APPLIANCES.length);
});

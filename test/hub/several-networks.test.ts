import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startTestModeHub, warningsOf } from '../netns/hub-on-host.ts';
import { occupyMdnsPort } from '../netns/mdns-port.ts';
import { captureMdns, OBSERVER_TOOLS, observeWithZeroconf } from '../netns/observers.ts';
import { serveHub, writeHubConfiguration } from '../netns/served-hub.ts';
import { createLan, lanSkipReason } from '../support/netns.ts';
import { skipIfUnavailable } from '../support/set-up.ts';
import { stateFolder } from '../support/state-folder.ts';

const MDNS_SENDER = join(import.meta.dirname, '../netns/mdns-sender.ts');

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

describe('a hub with two interfaces', () => {
  it('a hub with two networks is found in each at its address there, and one does not disturb the other', async () => {
    await using home = await createLan(['hub', 'near']);
    await using other = await createLan(['far'], 78);
    const { hub: machine, near } = home.hosts;
    const { far } = other.hosts;
    const wireless = await other.attach(machine, 'wlan0');
    const watching = [await observeWithZeroconf(near), await observeWithZeroconf(far)] as const;
    await using hub = await startTestModeHub(machine);
    expect((await watching[0].found()).addresses).toEqual(['10.77.0.1', 'fd77::1']);
    expect((await watching[1].found()).addresses).toEqual(['10.78.0.2', 'fd78::2']);
    expect((await hub.status()).hub.address).toBe('10.77.0.1');
    await hub.logged('hub_announced', ({ interface: name }) => name === 'eth0');

    const heard = await captureMdns(near);
    await wireless.plug('down');
    await wireless.plug('up');
    await machine.run('ip', ['addr', 'add', '10.78.0.99/24', 'dev', 'wlan0']);
    const moved = await watching[1].found(({ addresses }) => addresses.includes('10.78.0.99'));
    expect(moved.addresses).toEqual(expect.arrayContaining(['10.78.0.2', '10.78.0.99']));
    expect(heard().filter(({ from, kind }) => from === '10.77.0.1' && kind === 'probe')).toEqual([]);
    expect(watching[0].losses()).toEqual([]);

    await hub.process.stop('SIGTERM');
    await Promise.all(watching.map((one) => one.gone(moved.instanceName)));
  });

  it('a hub with two interfaces on one network is found at both addresses, and at one if the other is unplugged', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { hub: machine, appliance } = lan.hosts;
    const wireless = await lan.attach(machine, 'wlan0');
    const heard = await captureMdns(appliance);
    const watching = await observeWithZeroconf(appliance);
    await using hub = await startTestModeHub(machine);
    const both = ['10.77.0.1', '10.77.0.3', 'fd77::1', 'fd77::3'];
    const { instanceName } = await watching.found(({ addresses }) => addresses.toSorted().join() === both.join());
    // Each address record replaces what was cached: one of them alone would take the other one back.
    const [wired, radio] = ['0a4d0001', '0a4d0003'];
    const apart = heard().filter(({ kind, hex }) => kind === 'response' && hex.includes(wired) !== hex.includes(radio));
    expect(apart).toEqual([]);
    // It never takes itself for another one.
    expect(instanceName).toBe((await hub.status()).hub.name);

    const said = async (records: readonly string[]) => {
      const last = () => heard().findLast(({ kind }) => kind === 'response')?.hex ?? '';
      // As an A record that replaces what was cached; one that is taken back replaces nothing.
      const isIn = (record: string) => new RegExp(`00018001[0-9a-f]{8}0004${record}`).test(last());
      await expect.poll(() => [wired, radio].filter(isIn)).toEqual(records);
    };
    const isAnswered = async (addresses: readonly string[], records: readonly string[]) => {
      await said(records);
      const found = await (await observeWithZeroconf(appliance)).found();
      expect(found.addresses.toSorted()).toEqual(addresses);
    };
    await machine.plug('down');
    await isAnswered(['10.77.0.3', 'fd77::3'], [radio]);
    await machine.plug('up');
    await isAnswered(both, [wired, radio]);

    const { host } = await watching.found();
    const echo = ['20', '200', 'address', host, '10.77.0.3'];
    const late = appliance.spawn(process.execPath, [MDNS_SENDER, appliance.address, ...echo]);
    await late.line((line) => line === 'ready' || undefined);
    await wireless.plug('down');
    await said([wired]);
    // What it said of itself before comes back to it late, as on a machine that is busy.
    late.child.stdin?.write('now\n');
    await late.line((line) => line === 'sent' || undefined);
    await isAnswered(['10.77.0.1', 'fd77::1'], [wired]);
    expect(watching.losses()).toEqual([]);
    expect(warningsOf(hub.process)).toEqual([]);
  });

  it('a hub is announced only on the network of lan.address', async () => {
    await using home = await createLan(['hub', 'near']);
    await using other = await createLan(['far'], 78);
    const { hub: machine, near } = home.hosts;
    const { far } = other.hosts;
    await other.attach(machine, 'wlan0');
    const heard = await captureMdns(near);
    const watching = await observeWithZeroconf(far);
    await using hub = await startTestModeHub(machine, undefined, { LATCHKEY_LAN_ADDRESS: '10.78.0.2' });
    expect((await watching.found()).addresses).toEqual(['10.78.0.2']);
    expect(heard().filter(({ text }) => text.includes('_latchkey'))).toEqual([]);
    expect((await hub.status()).hub.address).toBe('10.78.0.2');
  });
});

describe('the announcement across a reload', () => {
  it('a hub stays found if a reload changes only its port, and takes an old name back with a goodbye', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    using folder = stateFolder();
    const watching = await observeWithZeroconf(lan.hosts.appliance);
    writeHubConfiguration(folder.path);
    const daemon = serveHub(lan.hosts.hub, folder.path);
    expect(await watching.found()).toMatchObject({ instanceName: 'Cellar hub', port: 8443 });

    writeHubConfiguration(folder.path, { httpsPort: 9443 });
    daemon.child.kill('SIGHUP');
    await watching.found(({ port }) => port === 9443);
    expect(watching.losses()).toEqual([]);

    writeHubConfiguration(folder.path, { name: 'Attic hub' });
    daemon.child.kill('SIGHUP');
    expect(await watching.found(({ instanceName }) => instanceName === 'Attic hub')).toMatchObject({ port: 8443 });
    await watching.gone('Cellar hub');
    expect(await daemon.stop('SIGTERM')).toBe(0);
    await watching.gone('Attic hub');
  });
});

describe('the mDNS port in use by another program', () => {
  it('the hub logs that another program has the mDNS port, and is announced when the port is free', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { hub: machine, appliance } = lan.hosts;
    await machine.run('ip', ['-6', 'addr', 'flush', 'dev', 'eth0']);
    const keeper = await occupyMdnsPort(machine);
    await using hub = await startTestModeHub(machine);
    expect(await hub.logged('announcement_failed')).toMatchObject({
      error: expect.stringMatching(/UDP port 5353.* at 10\.77\.0\.1: .*EADDRINUSE/),
    });
    await keeper.stop();
    const watching = await observeWithZeroconf(appliance);
    await hub.logged('hub_announced');
    expect((await watching.found()).addresses).toEqual(['10.77.0.1']);
    expect(warningsOf(hub.process)).toHaveLength(1);
  });
});

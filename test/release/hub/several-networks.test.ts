import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startTestModeHub, warningsOf } from '../../netns/hub-on-host.ts';
import { captureMdns, OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { serveHub, writeHubConfiguration } from '../../netns/served-hub.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';
import { stateFolder } from '../../support/state-folder.ts';

const MDNS_SENDER = join(import.meta.dirname, '../../netns/mdns-sender.ts');

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

describe('a hub with two interfaces', () => {
  it('a hub with two networks is found in each at its address there, and one does not disturb the other', async () => {
    await using home = await createLan(['hub', 'near']);
    await using other = await createLan(['far'], 78);
    const { hub: machine, near } = home.hosts;
    const { far } = other.hosts;
    const wireless = await other.attach(machine, 'wlan0');
    const zeroconf = [await observeWithZeroconf(near), await observeWithZeroconf(far)] as const;
    await using hub = await startTestModeHub(machine);
    expect((await zeroconf[0].found()).addresses).toEqual(['10.77.0.1', 'fd77::1']);
    expect((await zeroconf[1].found()).addresses).toEqual(['10.78.0.2', 'fd78::2']);
    expect((await hub.status()).hub.address).toBe('10.77.0.1');
    await hub.logged('hub_announced', ({ interface: name }) => name === 'eth0');

    const captured = await captureMdns(near);
    await wireless.plug('down');
    await wireless.plug('up');
    await machine.run('ip', ['addr', 'add', '10.78.0.99/24', 'dev', 'wlan0']);
    const moved = await zeroconf[1].found(({ addresses }) => addresses.includes('10.78.0.99'));
    expect(moved.addresses).toEqual(expect.arrayContaining(['10.78.0.2', '10.78.0.99']));
    expect(captured().filter(({ from, kind }) => from === '10.77.0.1' && kind === 'probe')).toEqual([]);
    expect(zeroconf[0].losses()).toEqual([]);

    await hub.process.stop('SIGTERM');
    await Promise.all(zeroconf.map((observer) => observer.gone(moved.instanceName)));
  });

  it('a hub with two interfaces on one network is found at both addresses, and at one if the other is unplugged', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { hub: machine, appliance } = lan.hosts;
    const wireless = await lan.attach(machine, 'wlan0');
    const captured = await captureMdns(appliance);
    const zeroconf = await observeWithZeroconf(appliance);
    await using hub = await startTestModeHub(machine);
    const both = ['10.77.0.1', '10.77.0.3', 'fd77::1', 'fd77::3'];
    const { instanceName } = await zeroconf.found(({ addresses }) => addresses.toSorted().join() === both.join());
    // Each address record replaces the cached ones: a response with one of them would remove the other.
    const [wired, radio] = ['0a4d0001', '0a4d0003'];
    const partial = captured().filter(
      ({ kind, hex }) => kind === 'response' && hex.includes(wired) !== hex.includes(radio),
    );
    expect(partial).toEqual([]);
    // The hub never takes itself for another hub.
    expect(instanceName).toBe((await hub.status()).hub.name);

    const expectLastRecords = async (records: readonly string[]) => {
      const last = () => captured().findLast(({ kind }) => kind === 'response')?.hex ?? '';
      // An A record with the cache-flush bit; a goodbye has none.
      const isIn = (record: string) => new RegExp(`00018001[0-9a-f]{8}0004${record}`).test(last());
      await expect.poll(() => [wired, radio].filter(isIn)).toEqual(records);
    };
    const expectAnswer = async (addresses: readonly string[], records: readonly string[]) => {
      await expectLastRecords(records);
      const found = await (await observeWithZeroconf(appliance)).found();
      expect(found.addresses.toSorted()).toEqual(addresses);
    };
    await machine.plug('down');
    await expectAnswer(['10.77.0.3', 'fd77::3'], [radio]);
    await machine.plug('up');
    await expectAnswer(both, [wired, radio]);

    const { host } = await zeroconf.found();
    const echo = ['20', '200', 'address', host, '10.77.0.3'];
    const late = appliance.spawn(process.execPath, [MDNS_SENDER, appliance.address, ...echo]);
    await late.line((line) => line === 'ready' || undefined);
    await wireless.plug('down');
    await expectLastRecords([wired]);
    // The hub receives its own earlier record late, as on a busy machine.
    late.child.stdin?.write('now\n');
    await late.line((line) => line === 'sent' || undefined);
    await expectAnswer(['10.77.0.1', 'fd77::1'], [wired]);
    expect(zeroconf.losses()).toEqual([]);
    expect(warningsOf(hub.process)).toEqual([]);
  });
});

describe('the announcement across a reload', () => {
  it('a hub stays found if a reload changes only its port, and takes an old name back with a goodbye', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    using folder = stateFolder();
    const zeroconf = await observeWithZeroconf(lan.hosts.appliance);
    writeHubConfiguration(folder.path);
    const daemon = serveHub(lan.hosts.hub, folder.path);
    expect(await zeroconf.found()).toMatchObject({ instanceName: 'Cellar hub', port: 8443 });

    writeHubConfiguration(folder.path, { httpsPort: 9443 });
    daemon.child.kill('SIGHUP');
    await zeroconf.found(({ port }) => port === 9443);
    expect(zeroconf.losses()).toEqual([]);

    writeHubConfiguration(folder.path, { name: 'Attic hub' });
    daemon.child.kill('SIGHUP');
    expect(await zeroconf.found(({ instanceName }) => instanceName === 'Attic hub')).toMatchObject({ port: 8443 });
    await zeroconf.gone('Cellar hub');
    expect(await daemon.stop('SIGTERM')).toBe(0);
    await zeroconf.gone('Attic hub');
  });
});

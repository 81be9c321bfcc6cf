import { describe, expect, it } from 'vitest';
import { logIn, requestToken, runCurl, startTestModeHub } from '../../netns/hub-on-host.ts';
import { captureMdns, OBSERVER_TOOLS, observeWithZeroconf } from '../../netns/observers.ts';
import { eventually } from '../../support/hub-process.ts';
import { createLan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason([...OBSERVER_TOOLS, '/usr/bin/curl']));

describe('a hub whose network cable was unplugged', () => {
  it('a hub whose cable was unplugged probes for its name again, and is found', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { hub: machine, appliance } = lan.hosts;
    await using hub = await startTestModeHub(machine);
    await hub.logged('hub_announced');
    const status = (await hub.status()).hub;
    const captured = await captureMdns(appliance);
    const probes = () => captured().filter(({ kind, text }) => kind === 'probe' && text.includes(status.id)).length;
    expect(probes()).toBe(0);
    await machine.plug('down');
    await machine.plug('up');
    // The hub may now be on another network, where another device has its name: it probes.
    await expect.poll(probes).toBe(3);
    await machine.run('ip', ['link', 'set', 'eth0', 'down']);
    await machine.run('ip', ['link', 'set', 'eth0', 'up']);
    await expect.poll(probes).toBe(6);

    await machine.plug('down');
    await hub.logged('address_changed', ({ address }) => address === null);
    expect((await hub.status()).hub.address).toBeNull();
    await machine.plug('up');
    const later = await observeWithZeroconf(appliance);
    expect((await later.found()).addresses).toEqual(['10.77.0.1']);
    const url = 'https://10.77.0.1:8443/.well-known/oauth-authorization-server';
    expect(JSON.parse(await runCurl(appliance, ['--cacert', hub.caFile, url]))).toHaveProperty('token_endpoint');
  });
});

describe('a hub that starts without a network', () => {
  it('a hub without a network pairs by polling, and is announced and reached over TLS when it gets an address', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { appliance } = lan.hosts;
    const machine = lan.hosts.hub;
    await machine.run('ip', ['addr', 'flush', 'dev', 'eth0']);
    await machine.run('ip', ['link', 'set', 'eth0', 'down']);
    await using hub = await startTestModeHub(machine);
    expect(await hub.logged('hub_started')).toMatchObject({ address: null });
    expect((await hub.status()).hub.address).toBeNull();

    const credentials = await hub.addAppliance('wallbox');
    expect(await logIn(machine, await hub.beginPairing('wallbox'))).toContain('You can close this page');
    await eventually(async () => (await hub.status()).appliances[0]?.state === 'active');

    const zeroconf = await observeWithZeroconf(appliance);
    await machine.run('ip', ['link', 'set', 'eth0', 'up']);
    await machine.run('ip', ['addr', 'add', '10.77.0.1/24', 'dev', 'eth0']);
    const found = await zeroconf.found();
    expect(found.addresses).toEqual(['10.77.0.1']);
    expect((await hub.status()).hub.address).toBe('10.77.0.1');
    const route = { origin: 'https://10.77.0.1:8443', caFile: hub.caFile };
    expect(await requestToken(appliance, route, credentials)).toMatchObject({ token_type: 'Bearer' });
  });
});

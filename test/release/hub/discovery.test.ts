import { describe, expect, it } from 'vitest';
import { runCurl, startTestModeHub, type TestModeHub } from '../../netns/hub-on-host.ts';
import {
  type Avahi,
  captureMdns,
  OBSERVER_TOOLS,
  observeWithZeroconf,
  type ResolvedService,
  startAvahi,
} from '../../netns/observers.ts';
import { createLan, type Host, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason([...OBSERVER_TOOLS, '/usr/bin/curl']));

describe('a hub on a home network', () => {
  it('the hub is found and reached as soon as it has probed three times, shows its pin, and sends a goodbye', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { observer } = lan.hosts;
    await using avahi = await startAvahi(observer);
    const observers = [
      { browser: await observeWithZeroconf(observer), addresses: ['10.77.0.1', 'fd77::1'] },
      { browser: avahi.browse(), addresses: ['10.77.0.1'] },
    ];
    const captured = await captureMdns(observer);
    await using hub = await startTestModeHub(lan.hosts.hub);
    const start = await hub.logged('hub_started');
    const { hub: status } = await hub.status();
    const pin = (await hub.ask((control) => control.request('authority'))).fingerprint;

    for (const { browser, addresses } of observers) {
      const seen = await browser.found();
      expect(seen).toMatchObject({
        instanceName: status.name,
        host: `${status.id}.local`,
        addresses,
        port: status.https_port,
        txt: { txtvers: '1', id: status.id, v: status.version, http: String(status.http_port), capk: pin },
      });
      expect(await metadataAt(observer, seen, hub)).toHaveProperty('token_endpoint');
    }
    const sent = captured().filter(({ from, kind }) => from === '10.77.0.1' && kind !== 'query');
    expect(sent.slice(0, 4).map(({ kind }) => kind)).toEqual(['probe', 'probe', 'probe', 'response']);
    expect(start).toMatchObject({ id: status.id, address: '10.77.0.1', https_port: 8443, http_port: 8480 });

    expect(await hub.process.stop('SIGTERM')).toBe(0);
    await Promise.all(observers.map(({ browser }) => browser.gone(status.name)));
  });

  it('the hub is found at its new address, and no longer at the old one', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { hub: machine, appliance } = lan.hosts;
    await using hub = await startTestModeHub(machine);
    const zeroconf = await observeWithZeroconf(appliance);
    await zeroconf.found();
    await using avahi = await startAvahi(appliance);

    await machine.run('ip', ['-4', 'addr', 'flush', 'dev', 'eth0']);
    await machine.run('ip', ['addr', 'add', '10.77.0.201/24', 'dev', 'eth0']);
    const moved = await zeroconf.found(({ addresses }) => addresses.includes('10.77.0.201'));
    // A client that knew the old address drops it a second later (RFC 6762, 10.2).
    await expect.poll(() => addressesSeen(avahi)).toEqual(['10.77.0.201']);
    expect(await byAddress(appliance, '10.77.0.201', hub)).toHaveProperty('token_endpoint');
    const status = (await hub.status()).hub;
    expect(status.address).toBe('10.77.0.201');
    expect(moved.host).toBe(`${status.id}.local`);
    expect(zeroconf.losses()).toEqual([]);
  });
});

/** The OAuth metadata of a hub, at the address that mDNS announced. */
async function metadataAt(from: Host, { host, port, addresses }: ResolvedService, hub: TestModeHub): Promise<unknown> {
  const resolve = ['--resolve', `${host}:${port}:${addresses[0]}`];
  return JSON.parse(await runCurl(from, ['--cacert', hub.caFile, ...resolve, metadataUrl(`${host}:${port}`)]));
}

async function byAddress(from: Host, address: string, hub: TestModeHub): Promise<unknown> {
  return JSON.parse(await runCurl(from, ['--cacert', hub.caFile, metadataUrl(`${address}:8443`)]));
}

function metadataUrl(host: string): string {
  return `https://${host}/.well-known/oauth-authorization-server`;
}

async function addressesSeen(avahi: Avahi): Promise<readonly string[]> {
  return (await avahi.browseOnce()).flatMap(({ addresses }) => addresses);
}

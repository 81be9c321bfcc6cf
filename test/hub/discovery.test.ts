import { beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { curl, requestToken, startTestModeHub, type TestModeHub } from '../netns/hub-on-host.ts';
import { type Avahi, OBSERVER_TOOLS, observeWithZeroconf, type Sighting, startAvahi } from '../netns/observers.ts';
import { eventually } from '../support/hub-process.ts';
import { createLan, type Host, whyNoLan } from '../support/netns.ts';

/** Seconds from the hub's start to its being found. */
const SOON = 2;

beforeEach(async (ctx: TestContext) => {
  const reason = await whyNoLan([...OBSERVER_TOOLS, '/usr/bin/curl']);
  if (reason !== null) ctx.skip(reason);
});

describe('a hub on a home network', () => {
  it('is found and resolved within 2 s of its start, with its pin, and says goodbye', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { observer } = lan.hosts;
    await using avahi = await startAvahi(observer);
    const observers = [await observeWithZeroconf(observer), avahi.browse()];
    await using hub = await startTestModeHub(lan.hosts.hub);
    const { at: started, ...start } = await hub.logged('hub started');
    const { hub: told } = await hub.status();
    const pin = (await hub.cli('ca', '--fingerprint')).trim();

    for (const one of observers) {
      const { at, ...seen } = await one.found();
      expect(at - started).toBeLessThan(SOON);
      expect(seen).toEqual({
        instanceName: told.name,
        host: `${told.id}.local`,
        addresses: ['10.77.0.1'],
        port: told.https_port,
        txt: { txtvers: '1', id: told.id, v: told.version, http: String(told.http_port), capk: pin },
      });
    }
    expect(start).toMatchObject({ id: told.id, address: '10.77.0.1', https_port: 8443, http_port: 8480 });

    expect(await hub.process.stop('SIGTERM')).toBe(0);
    await Promise.all(observers.map((one) => one.gone(told.name)));
  });

  it('is reached by the name, address and port that were found, over TLS', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { appliance } = lan.hosts;
    const watching = await observeWithZeroconf(appliance);
    await using hub = await startTestModeHub(lan.hosts.hub);
    const metadata = await metadataAt(appliance, await watching.found(), hub);
    expect(metadata).toMatchObject({ token_endpoint: expect.stringContaining('/oauth/token') });
  });

  it('is found at its new address when that changes, and its certificate names it', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { appliance } = lan.hosts;
    await using hub = await startTestModeHub(lan.hosts.hub);
    const watching = await observeWithZeroconf(appliance);
    await watching.found();
    await using avahi = await startAvahi(appliance);

    await lan.hosts.hub.run('ip', ['addr', 'del', '10.77.0.1/24', 'dev', 'eth0']);
    await lan.hosts.hub.run('ip', ['addr', 'add', '10.77.0.201/24', 'dev', 'eth0']);
    const moved = await watching.found(({ addresses }) => addresses.includes('10.77.0.201'));
    expect((await hub.status()).hub.address).toBe('10.77.0.201');
    expect(await byAddress(appliance, '10.77.0.201', hub)).toHaveProperty('token_endpoint');
    expect(moved.host).toBe(`${(await hub.status()).hub.id}.local`);
    // Whoever knew the old address forgets it a second later (RFC 6762 section 10.2).
    await expect.poll(() => addressesSeen(avahi), { timeout: 10_000 }).toEqual(['10.77.0.201']);
  });

  it('is found again when the cable was out for a while', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { appliance } = lan.hosts;
    await using hub = await startTestModeHub(lan.hosts.hub);
    await hub.logged('announced');
    await lan.hosts.hub.plug('down');
    await hub.logged('address changed', ({ address }) => address === null);
    expect((await hub.status()).hub.address).toBeNull();
    await lan.hosts.hub.plug('up');
    const watching = await observeWithZeroconf(appliance);
    expect((await watching.found()).addresses).toEqual(['10.77.0.1']);
    expect(await byAddress(appliance, '10.77.0.1', hub)).toHaveProperty('token_endpoint');
  });

  it('is found when its interface went down and up at once', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    await using hub = await startTestModeHub(lan.hosts.hub);
    await hub.logged('announced');
    await lan.hosts.hub.run('ip', ['link', 'set', 'eth0', 'down']);
    await lan.hosts.hub.run('ip', ['link', 'set', 'eth0', 'up']);
    const watching = await observeWithZeroconf(lan.hosts.appliance);
    expect((await watching.found()).addresses).toEqual(['10.77.0.1']);
  });
});

describe('a hub that starts without any network', () => {
  it('pairs by polling, and is announced and reached over TLS as soon as there is an address', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { appliance } = lan.hosts;
    const machine = lan.hosts.hub;
    await machine.run('ip', ['addr', 'flush', 'dev', 'eth0']);
    await machine.run('ip', ['link', 'set', 'eth0', 'down']);
    await using hub = await startTestModeHub(machine);
    expect(await hub.logged('hub started')).toMatchObject({ address: null });
    expect((await hub.status()).hub.address).toBeNull();

    const credentials = await hub.addAppliance('wallbox');
    const link = await hub.beginPairing('wallbox');
    const form = ['--data', 'username=demo', '--data', 'password=demo', '--data', 'action=login'];
    expect(await curl(machine, ['--location', ...form, link])).toContain('You can close this page');
    await eventually(async () => (await hub.status()).appliances[0]?.state === 'active');

    const watching = await observeWithZeroconf(appliance);
    await machine.run('ip', ['link', 'set', 'eth0', 'up']);
    await machine.run('ip', ['addr', 'add', '10.77.0.1/24', 'dev', 'eth0']);
    const found = await watching.found();
    expect(found.addresses).toEqual(['10.77.0.1']);
    expect((await hub.status()).hub.address).toBe('10.77.0.1');
    const route = { origin: 'https://10.77.0.1:8443', caFile: hub.caFile };
    expect(await requestToken(appliance, route, credentials)).toMatchObject({ token_type: 'Bearer' });
  });
});

/** The OAuth metadata of a hub, by what mDNS told of it. */
async function metadataAt(from: Host, { host, port, addresses }: Sighting, hub: TestModeHub): Promise<unknown> {
  const resolve = ['--resolve', `${host}:${port}:${addresses[0]}`];
  return JSON.parse(await curl(from, ['--cacert', hub.caFile, ...resolve, metadataUrl(`${host}:${port}`)]));
}

async function byAddress(from: Host, address: string, hub: TestModeHub): Promise<unknown> {
  return JSON.parse(await curl(from, ['--cacert', hub.caFile, metadataUrl(`${address}:8443`)]));
}

function metadataUrl(host: string): string {
  return `https://${host}/.well-known/oauth-authorization-server`;
}

async function addressesSeen(avahi: Avahi): Promise<readonly string[]> {
  return (await avahi.browseOnce()).flatMap(({ addresses }) => addresses);
}

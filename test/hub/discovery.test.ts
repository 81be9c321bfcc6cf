import { beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { curl, requestToken, startTestModeHub, type TestModeHub } from '../netns/hub-on-host.ts';
import {
  type Avahi,
  listenToMdns,
  OBSERVER_TOOLS,
  observeWithZeroconf,
  type Sighting,
  startAvahi,
} from '../netns/observers.ts';
import { eventually } from '../support/hub-process.ts';
import { createLan, type Host, whyNoLan } from '../support/netns.ts';

/** Seconds from the hub's start to its being found. */
const SOON = 2;

/** Seconds from a change of its address to its being found there. */
const SETTLED = 6;

beforeEach(async (ctx: TestContext) => {
  const reason = await whyNoLan([...OBSERVER_TOOLS, '/usr/bin/curl']);
  if (reason !== null) ctx.skip(reason);
});

describe('a hub on a home network', () => {
  it('is found, resolved and reached within 2 s of its start, with its pin, and says goodbye', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { observer } = lan.hosts;
    await using avahi = await startAvahi(observer);
    const observers = [
      { by: await observeWithZeroconf(observer), addresses: ['10.77.0.1', 'fd77::1'] },
      { by: avahi.browse(), addresses: ['10.77.0.1'] },
    ];
    await using hub = await startTestModeHub(lan.hosts.hub);
    const { at: started, ...start } = await hub.logged('hub started');
    const { hub: told } = await hub.status();
    const pin = (await hub.cli('ca', '--fingerprint')).trim();

    for (const { by, addresses } of observers) {
      const { at, ...seen } = await by.found();
      expect(at - started).toBeLessThan(SOON);
      expect(seen).toEqual({
        instanceName: told.name,
        host: `${told.id}.local`,
        addresses,
        port: told.https_port,
        txt: { txtvers: '1', id: told.id, v: told.version, http: String(told.http_port), capk: pin },
      });
      expect(await metadataAt(observer, { at, ...seen }, hub)).toHaveProperty('token_endpoint');
    }
    expect(start).toMatchObject({ id: told.id, address: '10.77.0.1', https_port: 8443, http_port: 8480 });

    expect(await hub.process.stop('SIGTERM')).toBe(0);
    await Promise.all(observers.map(({ by }) => by.gone(told.name)));
  });

  it('is found wherever it is now: at a new address, after its cable was out, and when that was for a moment only', async () => {
    await using lan = await createLan(['hub', 'appliance']);
    const { hub: machine, appliance } = lan.hosts;
    await using hub = await startTestModeHub(machine);
    const watching = await observeWithZeroconf(appliance);
    await watching.found();
    await using avahi = await startAvahi(appliance);

    const { at } = await moveTo(machine, '10.77.0.201');
    const moved = await watching.found(({ addresses }) => addresses.includes('10.77.0.201'));
    expect(moved.at - at).toBeLessThan(SETTLED);
    // Whoever knew the old address forgets it a second later (RFC 6762 section 10.2).
    await expect.poll(() => addressesSeen(avahi), { timeout: 10_000 }).toEqual(['10.77.0.201']);
    expect(await byAddress(appliance, '10.77.0.201', hub)).toHaveProperty('token_endpoint');
    const told = (await hub.status()).hub;
    expect(told.address).toBe('10.77.0.201');
    expect(moved.host).toBe(`${told.id}.local`);
    expect(watching.losses()).toEqual([]);

    const heard = await listenToMdns(appliance);
    const probes = () => heard().filter(({ kind, text }) => kind === 'probe' && text.includes(told.id)).length;
    expect(probes()).toBe(0);
    await machine.plug('down');
    await machine.plug('up');
    // It may be in another network now, where somebody else has its name: it asks.
    await expect.poll(probes, { timeout: 10_000 }).toBe(3);
    await machine.run('ip', ['link', 'set', 'eth0', 'down']);
    await machine.run('ip', ['link', 'set', 'eth0', 'up']);
    await expect.poll(probes, { timeout: 10_000 }).toBe(6);

    await machine.plug('down');
    await hub.logged('address changed', ({ address }) => address === null);
    expect((await hub.status()).hub.address).toBeNull();
    await machine.plug('up');
    const later = await observeWithZeroconf(appliance);
    expect((await later.found()).addresses).toEqual(['10.77.0.201']);
    expect(await byAddress(appliance, '10.77.0.201', hub)).toHaveProperty('token_endpoint');
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

/** Gives the hub another IPv4 address. @returns when, in seconds on CLOCK_MONOTONIC */
async function moveTo(machine: Host, address: string): Promise<{ at: number }> {
  await machine.run('ip', ['-4', 'addr', 'flush', 'dev', 'eth0']);
  await machine.run('ip', ['addr', 'add', `${address}/24`, 'dev', 'eth0']);
  return { at: Number(process.hrtime.bigint()) / 1e9 };
}

function metadataUrl(host: string): string {
  return `https://${host}/.well-known/oauth-authorization-server`;
}

async function addressesSeen(avahi: Avahi): Promise<readonly string[]> {
  return (await avahi.browseOnce()).flatMap(({ addresses }) => addresses);
}

import { beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { curl, startTestModeHub, type TestModeHub } from '../netns/hub-on-host.ts';
import { type Avahi, OBSERVER_TOOLS, observeWithZeroconf, type Sighting, startAvahi } from '../netns/observers.ts';
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
      { by: await observeWithZeroconf(observer, observer.address6), addresses: ['10.77.0.1', 'fd77::1'] },
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

  it('is found at its new address within 6 s, and no more at the old one', async () => {
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
    await expect.poll(() => addressesSeen(avahi)).toEqual(['10.77.0.201']);
    expect(await byAddress(appliance, '10.77.0.201', hub)).toHaveProperty('token_endpoint');
    const told = (await hub.status()).hub;
    expect(told.address).toBe('10.77.0.201');
    expect(moved.host).toBe(`${told.id}.local`);
    expect(watching.losses()).toEqual([]);
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

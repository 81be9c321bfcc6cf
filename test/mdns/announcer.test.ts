import { join } from 'node:path';
import { beforeEach, describe, expect, it, type TestContext } from 'vitest';
import { OBSERVER_TOOLS, observeWithZeroconf, type Sighting, startAvahi } from '../netns/observers.ts';
import { createLan, type Host, type Process, whyNoLan } from '../support/netns.ts';

const HUB = {
  instanceName: 'Cellar hub',
  id: '4f2a9c',
  httpsPort: 8443,
  txt: { v: '0.1.0', http: '8480', capk: 'kq2Tq0vT0X-uSxcAM51CMmLPbFHax41fREKDUrARbDZ' },
  setting: 'auto',
  repeats: true,
};

const SEEN: Omit<Sighting, 'at'> = {
  instanceName: 'Cellar hub',
  host: '4f2a9c.local',
  addresses: ['10.77.0.1'],
  port: 8443,
  txt: { txtvers: '1', id: '4f2a9c', ...HUB.txt },
};

/** Seconds in which an appliance finds the hub. */
const SOON = 2;

beforeEach(async (ctx: TestContext) => {
  const reason = await whyNoLan(OBSERVER_TOOLS);
  if (reason !== null) ctx.skip(reason);
});

describe('on a network with other hosts, the hub', () => {
  it('is found and resolved by who was already looking, and leaves with a goodbye', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    await using avahi = await startAvahi(observer);
    const observers = [await observeWithZeroconf(observer), avahi.browse()];
    const announcing = announceOn(hub);
    const since = await ready(announcing);

    for (const one of observers) {
      const { at, ...seen } = await one.found();
      expect(seen).toEqual(SEEN);
      expect(at - since).toBeLessThan(SOON);
    }

    expect(await announcing.stop('SIGTERM')).toBe(0);
    await Promise.all(observers.map((one) => one.gone('Cellar hub')));
  });

  it('answers who comes later and asks', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    await ready(announceOn(hub, { repeats: false }));
    const { at: _, ...seen } = await (await observeWithZeroconf(observer)).found();
    expect(seen).toEqual(SEEN);
    await using avahi = await startAvahi(observer);
    expect(withoutTimes(await avahi.browseOnce())).toEqual([SEEN]);
  });

  it('is found over IPv6 where there is no IPv4', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    await hub.run('ip', ['-4', 'addr', 'flush', 'dev', 'eth0']);
    const watching = await observeWithZeroconf(observer, observer.address6);
    const announcing = announceOn(hub);
    await ready(announcing);
    expect(await watching.found()).toMatchObject({ ...SEEN, addresses: [hub.address6] });
    expect(await announcing.stop('SIGTERM')).toBe(0);
    await watching.gone('Cellar hub');
  });

  it('announces the address it is reached at and no other, and listens on that network only', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    await addInterface(hub, 'docker0', '172.17.0.1/16');
    await addInterface(hub, 'wg0', '10.9.0.1/24');
    const watching = await observeWithZeroconf(observer);
    await ready(announceOn(hub));
    expect((await watching.found()).addresses).toEqual(['10.77.0.1']);
    expect(await mdnsInterfaces(hub)).toEqual(['eth0']);
  });
});

describe('when things change, the hub', () => {
  it('is announced at its new address, and no more at the old one', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    const watching = await observeWithZeroconf(observer);
    const announcing = announceOn(hub);
    await ready(announcing);
    await watching.found();
    await using avahi = await startAvahi(observer);
    await hub.run('ip', ['addr', 'del', '10.77.0.1/24', 'dev', 'eth0']);
    await hub.run('ip', ['addr', 'add', '10.77.0.200/24', 'dev', 'eth0']);
    announcing.child.stdin?.write('again\n');
    await watching.found(({ addresses }) => addresses.includes('10.77.0.200'));
    const addresses = async () => (await avahi.browseOnce()).flatMap((sighting) => sighting.addresses);
    await expect.poll(addresses, { timeout: 10_000 }).toEqual(['10.77.0.200']);
  });
});

describe('where a neighbour has its name, the hub', () => {
  it('adds a part of its id, and the neighbour stays', async () => {
    await using lan = await createLan(['neighbour', 'hub', 'observer']);
    const { neighbour, hub, observer } = lan.hosts;
    const watching = await observeWithZeroconf(observer);
    await ready(announceOn(neighbour, { id: 'bbbb11' }));
    await ready(announceOn(hub));
    const mine = await watching.found(({ txt }) => txt['id'] === '4f2a9c');
    expect(mine.instanceName).toBe('Cellar hub (4f2a)');
    await using avahi = await startAvahi(observer);
    const names = (await avahi.browseOnce()).map(({ instanceName, host }) => `${instanceName} at ${host}`);
    expect(names.toSorted()).toEqual(['Cellar hub (4f2a) at 4f2a9c.local', 'Cellar hub at bbbb11.local']);
  });

  it('agrees with it who gets the name, also when both come at once', async () => {
    await using lan = await createLan(['neighbour', 'hub']);
    const { neighbour, hub } = lan.hosts;
    const both = [announceOn(neighbour, { id: 'bbbb11' }), announceOn(hub)];
    const names = await Promise.all(both.map(readyName));
    expect(names.toSorted()).toEqual(['Cellar hub', expect.stringMatching(/^Cellar hub \((4f2a|bbbb)\)$/)]);
  });

  it('takes its name back at once after a restart', async () => {
    await using lan = await createLan(['hub']);
    const first = announceOn(lan.hosts.hub);
    await ready(first);
    const [second] = await Promise.all([readyName(announceOn(lan.hosts.hub)), first.stop()]);
    expect(second).toBe('Cellar hub');
  });

  it('says that its card was copied, where that is so', async () => {
    await using lan = await createLan(['original', 'copy', 'observer']);
    const { original, copy } = lan.hosts;
    await ready(announceOn(original));
    const copied = announceOn(copy);
    await copied.errorLine((line) => line.includes("has this hub's id") || undefined);
  });
});

describe('where there is no mDNS, the hub', () => {
  it('fails at once for an address of another machine', async () => {
    await using lan = await createLan(['hub']);
    const announcing = announceOn(lan.hosts.hub, { setting: '10.77.0.99' });
    await announcing.errorLine((line) => line.includes('port_unavailable') || undefined);
  });

  it('fails at once where another program keeps the port to itself', async () => {
    await using lan = await createLan(['hub']);
    const { hub } = lan.hosts;
    const keep =
      "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 5353)); print('kept', flush=True); time.sleep(60)";
    await hub.spawn('/usr/bin/python3', ['-c', keep]).line((line) => line === 'kept' || undefined);
    const announcing = announceOn(hub);
    await announcing.errorLine((line) => line.includes('EADDRINUSE') || undefined);
    expect(await announcing.end(5000)).toBe(1);
  });
});

function announceOn(host: Host, changes: Partial<typeof HUB> = {}): Process {
  const script = join(import.meta.dirname, '../netns/announce.ts');
  return host.spawn(process.execPath, [script, JSON.stringify({ ...HUB, ...changes })]);
}

/** When the hub said that it is announced, in seconds on CLOCK_MONOTONIC. */
function ready(announcing: Process): Promise<number> {
  return announcing.line((line) => {
    const { event, at } = JSON.parse(line);
    return event === 'ready' ? Number(at) : undefined;
  });
}

function readyName(announcing: Process): Promise<string> {
  return announcing.line((line) => {
    const { event, name } = JSON.parse(line);
    return event === 'ready' ? String(name) : undefined;
  });
}

async function addInterface(host: Host, name: string, cidr: string): Promise<void> {
  await host.run('ip', ['link', 'add', name, 'type', 'bridge']);
  await host.run('ip', ['addr', 'add', cidr, 'dev', name]);
  await host.run('ip', ['link', 'set', name, 'up']);
}

/** The interfaces on which a program of this host has joined mDNS's IPv4 group. */
async function mdnsInterfaces(host: Host): Promise<string[]> {
  const groups = await host.run('cat', ['/proc/net/igmp']);
  const interfaces = groups.split(/^(?=\d)/m).filter((device) => device.includes('FB0000E0'));
  return interfaces.map((device) => device.split(/\s+/)[1] ?? '');
}

function withoutTimes(sightings: readonly Sighting[]): Omit<Sighting, 'at'>[] {
  return sightings.map(({ at: _, ...rest }) => rest);
}

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  announceOn,
  changeAnnouncement,
  DEFAULT_ANNOUNCEMENT,
  waitForAnnouncerEvent,
} from '../../netns/announcer-process.ts';
import { occupyMdnsPort } from '../../netns/mdns-port.ts';
import { OBSERVER_TOOLS, observeWithZeroconf, type ResolvedService, startAvahi } from '../../netns/observers.ts';
import { createLan, type Host, type Lan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

/** The complete description of the hub, on a network with IPv4 and IPv6. */
const SEEN: Omit<ResolvedService, 'at'> = {
  instanceName: 'Cellar hub',
  host: '4f2a9c.local',
  addresses: ['10.77.0.1', 'fd77::1'],
  port: 8443,
  txt: { txtvers: '1', id: '4f2a9c', ...DEFAULT_ANNOUNCEMENT.txt },
};

/** The same as avahi-browse resolves it: with one address. */
const BROWSED = { ...SEEN, addresses: ['10.77.0.1'] };

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

let lan: Lan<'hub' | 'other' | 'observer'>;
beforeEach(async () => {
  lan = await createLan(['hub', 'other', 'observer']);
});
afterEach(() => lan[Symbol.asyncDispose]());

describe('the announcement on a network with other hosts', () => {
  it('hosts that browse find and resolve the hub over IPv4 and IPv6, and get its goodbye', async () => {
    const { hub, observer } = lan.hosts;
    await using avahi = await startAvahi(observer);
    const observers = [
      { seen: SEEN, browser: await observeWithZeroconf(observer) },
      { seen: SEEN, browser: await observeWithZeroconf(observer, observer.address6) },
      { seen: BROWSED, browser: avahi.browse() },
    ];
    const announcing = announceOn(hub);
    await waitForAnnouncerEvent(announcing, 'ready');

    for (const { seen, browser } of observers) {
      const { at: _, ...found } = await browser.found();
      expect(found).toEqual(seen);
    }

    expect(await announcing.stop('SIGTERM')).toBe(0);
    await Promise.all(observers.map(({ browser }) => browser.gone('Cellar hub')));
  });

  it('the hub responds to later and to simple resolvers, and does not speak mDNS on container and tunnel interfaces', async () => {
    const { hub, observer } = lan.hosts;
    await addInterface(hub, 'docker0', '172.17.0.1/16');
    await addInterface(hub, 'wg0', '10.9.0.1/24');
    await waitForAnnouncerEvent(announceOn(hub, { repeats: false }), 'ready');
    expect(await mdnsInterfaces(hub)).toEqual(['eth0']);
    const zeroconf = [await observeWithZeroconf(observer), await observeWithZeroconf(observer, observer.address6)];
    for (const one of zeroconf) expect(await one.found()).toMatchObject(SEEN);
    await using avahi = await startAvahi(observer);
    const found = (await avahi.browseOnce()).map(({ at: _, ...rest }) => rest);
    expect(found).toEqual([BROWSED]);
    // A simple resolver queries from a port of its own.
    for (const [source, group] of [
      [observer.address, '224.0.0.251'],
      [observer.address6, 'ff02::fb'],
    ] as const) {
      const script = join(import.meta.dirname, '../../netns/one-shot-query.py');
      const response = await observer.run('/usr/bin/python3', [script, '4f2a9c.local.', source, group]);
      expect(JSON.parse(response)).toMatchObject({
        id: 0x1234,
        port: 5353,
        questions: ['4f2a9c.local.'],
        records: [{ name: '4f2a9c.local.', ttl: 10, unique: false }],
      });
    }
  });
});

it('the hub sends a goodbye if it is stopped while it probes again, and none before its first announcement', async () => {
  const { hub, other, observer } = lan.hosts;
  const zeroconf = await observeWithZeroconf(observer);
  const announcing = announceOn(hub);
  await waitForAnnouncerEvent(announcing, 'ready');
  await zeroconf.found();
  await hub.plug('down');
  await hub.plug('up');
  const early = announceOn(other, { instanceName: 'Attic hub', id: 'bbbb11' });
  await waitForAnnouncerEvent(early, 'started');
  changeAnnouncement(announcing);
  await other.run('sleep', ['0.3']);
  expect(await Promise.all([announcing.stop('SIGTERM'), early.stop('SIGTERM')])).toEqual([0, 0]);
  await zeroconf.gone('Cellar hub');
  expect(zeroconf.losses()).toEqual(['Cellar hub']);
});

it('the hub reports that port 5353 is in use, and is announced over the other protocol', async () => {
  const { hub, observer } = lan.hosts;
  await occupyMdnsPort(hub);
  const zeroconf = await observeWithZeroconf(observer, observer.address6);
  const { missing } = await waitForAnnouncerEvent(announceOn(hub), 'ready');
  expect(missing).toMatch(/^can't use mDNS \(UDP port 5353\) at 10\.77\.0\.1: .*EADDRINUSE/);
  expect(await zeroconf.found()).toMatchObject(SEEN);

  await hub.run('ip', ['-6', 'addr', 'flush', 'dev', 'eth0']);
  const announcing = announceOn(hub);
  await announcing.errorLine((line) => line.includes('EADDRINUSE') || undefined);
  expect(await announcing.end(5000)).toBe(1);
});

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

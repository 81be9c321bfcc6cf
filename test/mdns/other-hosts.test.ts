import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { announceOn, announcerEvents, waitForAnnouncerEvent } from '../netns/announcer-process.ts';
import { captureMdns, OBSERVER_TOOLS, observeWithZeroconf } from '../netns/observers.ts';
import { createLan, type Host, lanSkipReason } from '../support/netns.ts';
import { skipIfUnavailable } from '../support/set-up.ts';

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

describe('the hub beside misbehaving devices', () => {
  it('the hub announces its service again at once when another device sends a goodbye for it', async () => {
    await using lan = await createLan(['hub', 'peer', 'observer']);
    const { hub, peer, observer } = lan.hosts;
    // The hub repeats nothing, and nobody queries it: it sends its next response because of the goodbye, not because of
    // a timer. Records that nobody contradicts are dropped after a second (RFC 6762, 10.1).
    await waitForAnnouncerEvent(announceOn(hub, { repeats: false }), 'ready');
    const captured = await captureMdns(observer);
    await send(peer, 1, 'goodbye', 'Cellar hub');
    const from = () => captured().find((one) => one.from === hub.address);
    await expect.poll(from).toMatchObject({ kind: 'response', text: expect.stringContaining('capk=') });
  });

  it('the hub groups its responses to a thousand queries, and still responds to later ones', async () => {
    await using lan = await createLan(['hub', 'peer', 'observer']);
    const { hub, peer, observer } = lan.hosts;
    await waitForAnnouncerEvent(announceOn(hub, { repeats: false }), 'ready');
    const captured = await captureMdns(observer);
    await send(peer, 20, 'questions');
    const answers = () => captured().filter(({ from }) => from === hub.address);
    await expect.poll(() => answers().length).toBeGreaterThan(0);
    expect((await (await observeWithZeroconf(observer)).found()).instanceName).toBe('Cellar hub');
    expect(answers().length).toBeLessThan(10);
  });

  it('the hub ignores a packet that is larger than mDNS permits', async () => {
    await using lan = await createLan(['hub', 'peer', 'observer']);
    const { hub, peer, observer } = lan.hosts;
    await waitForAnnouncerEvent(announceOn(hub, { repeats: false }), 'ready');
    const captured = await captureMdns(observer);
    const answers = () => captured().filter(({ from }) => from === hub.address);
    await send(peer, 1, 'large', '9400');
    // A responder that read both packets would answer the first one first.
    await send(peer, 1, 'questions');
    await expect.poll(() => answers().length).toBeGreaterThan(0);
    expect(
      answers()
        .map(({ text }) => text)
        .join(),
    ).not.toContain('_services');
    await send(peer, 1, 'large', '8900');
    await expect
      .poll(() =>
        answers()
          .map(({ text }) => text)
          .join(),
      )
      .toContain('_services');
  });
});

it('the hub sends mDNS with hop limit 255, which shows that it comes from the same link', async () => {
  await using lan = await createLan(['hub', 'observer']);
  const limits = lan.hosts.observer.spawn('/usr/bin/python3', [join(import.meta.dirname, '../netns/hop-limits.py')]);
  await limits.line((line) => line === 'listening' || undefined);
  await waitForAnnouncerEvent(announceOn(lan.hosts.hub), 'ready');
  for (const family of ['AF_INET', 'AF_INET6']) {
    expect(await limits.line((line) => (line.startsWith(`${family} `) ? line : undefined))).toBe(`${family} 255`);
  }
});

it('the hub keeps a name that differs from another one only in the case of a non-ASCII letter', async () => {
  await using lan = await createLan(['hub', 'peer', 'observer']);
  const { hub, peer, observer } = lan.hosts;
  const names = ['KÜCHE', 'Küche'] as const;
  const hubs = [
    announceOn(hub, { instanceName: names[0] }),
    announceOn(peer, { instanceName: names[1], id: 'bbbb11' }),
  ];
  const ready = await Promise.all(hubs.map((one) => waitForAnnouncerEvent(one, 'ready')));
  expect(ready.map(({ name }) => name)).toEqual(names);
  const zeroconf = await observeWithZeroconf(observer);
  for (const name of names) await zeroconf.found(({ instanceName }) => instanceName === name);
  for (const one of hubs) expect(announcerEvents(one).map(({ event }) => event)).toEqual(['started', 'ready']);
});

it.each(['lan_home', 'wläñ', 'a@b'])(
  'the hub is also found over IPv6 on an interface with the name %s',
  async (name) => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    await hub.run('ip', ['link', 'set', 'eth0', 'down']);
    await hub.run('ip', ['link', 'set', 'eth0', 'name', name]);
    await hub.run('ip', ['link', 'set', name, 'up']);
    await hub.run('ip', ['addr', 'add', `${hub.address6}/64`, 'dev', name, 'nodad']);
    const zeroconf = await observeWithZeroconf(observer, observer.address6);
    expect((await waitForAnnouncerEvent(announceOn(hub), 'ready')).missing).toBeNull();
    expect((await zeroconf.found()).addresses).toEqual([hub.address, hub.address6]);
  },
);

async function send(host: Host, times: number, ...what: readonly string[]): Promise<void> {
  const script = join(import.meta.dirname, '../netns/mdns-sender.ts');
  await host.run(process.execPath, [script, host.address, String(times), '0', ...what]);
}

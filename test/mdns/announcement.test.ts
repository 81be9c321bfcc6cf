// A hub in a network namespace, as another host hears it. Other mDNS programs observe it in test/release/mdns.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  announceOn,
  announcerEvents,
  DEFAULT_ANNOUNCEMENT,
  waitForAnnouncerEvent,
} from '../netns/announcer-process.ts';
import { captureMdns } from '../netns/observers.ts';
import { createLan, type Host, type Lan, lanSkipReason } from '../support/netns.ts';
import { setUpOnce } from '../support/set-up.ts';

const skipReason = () => lanSkipReason(['/usr/bin/python3']);

let lan: Lan<'hub' | 'peer' | 'third' | 'observer'>;
setUpOnce(
  async (parts) => {
    lan = parts.use(await createLan(['hub', 'peer', 'third', 'observer']));
  },
  { skipReason },
);

/** Captures mDNS on the observer. @returns the responses of a host so far */
async function responsesOf({ address }: Host) {
  const captured = await captureMdns(lan.hosts.observer);
  return () => captured().filter(({ from, kind }) => from === address && kind === 'response');
}

const textOf = (packets: readonly { readonly text: string }[]) => packets.map(({ text }) => text).join();

it('the hub announces its name, addresses and settings with hop limit 255, and sends a goodbye', async () => {
  const { hub, observer } = lan.hosts;
  const responses = await responsesOf(hub);
  const limits = observer.spawn('/usr/bin/python3', [join(import.meta.dirname, '../netns/hop-limits.py')]);
  await limits.line((line) => line === 'listening' || undefined);
  const announcing = announceOn(hub);
  await waitForAnnouncerEvent(announcing, 'ready');
  await expect.poll(() => textOf(responses())).toContain('_latchkey');
  const [announced] = responses();
  for (const text of ['Cellar hub', '4f2a9c', 'id=4f2a9c', `capk=${DEFAULT_ANNOUNCEMENT.txt.capk}`])
    expect(announced?.text).toContain(text);
  // 10.77.0.1, fd77::1, and port 8443 as the end of the fixed part of an SRV record.
  for (const hex of ['0a4d0001', `fd77${'0'.repeat(27)}1`, '0000000020fb']) expect(announced?.hex).toContain(hex);
  for (const family of ['AF_INET', 'AF_INET6']) {
    expect(await limits.line((line) => (line.startsWith(`${family} `) ? line : undefined))).toBe(`${family} 255`);
  }
  const before = responses().length;
  expect(await announcing.stop()).toBe(0);
  await expect.poll(() => responses().length).toBeGreaterThan(before);
  // The pointer of the service (PTR, IN) with a TTL of 0.
  expect(responses().at(-1)?.hex).toContain('000c000100000000');
});

describe('the hub beside other hubs', () => {
  it('three hubs with one name are told apart by the part of their ids that differs', async () => {
    const { hub, peer, third } = lan.hosts;
    const ids = ['latchkey-5f0c9a1e', 'latchkey-77d21b03', 'latchkey-c4e8a955'];
    const names: unknown[] = [];
    const hubs = [hub, peer, third].map((host, index) => [host, ids[index] ?? ''] as const);
    const announced: ReturnType<typeof announceOn>[] = [];
    for (const [host, id] of hubs) {
      const one = announceOn(host, { id });
      announced.push(one);
      names.push((await waitForAnnouncerEvent(one, 'ready')).name);
    }
    await Promise.all(announced.map((one) => one.stop()));
    expect(names).toEqual(['Cellar hub', 'Cellar hub (77d2)', 'Cellar hub (c4e8)']);
  });

  it('a hub keeps a name that differs from another one only in the case of a non-ASCII letter, also after a restart', async () => {
    const { hub, peer } = lan.hosts;
    const names = ['KÜCHE', 'Küche'] as const;
    const announceFirst = () => announceOn(hub, { instanceName: names[0] });
    const hubs = [announceFirst(), announceOn(peer, { instanceName: names[1], id: 'bbbb11' })] as const;
    const ready = await Promise.all(hubs.map((one) => waitForAnnouncerEvent(one, 'ready')));
    expect(ready.map(({ name }) => name)).toEqual(names);
    // The next run begins while the last one says goodbye.
    const again = announceFirst();
    const [{ name }] = await Promise.all([waitForAnnouncerEvent(again, 'ready'), hubs[0].stop()]);
    expect(name).toBe(names[0]);
    for (const one of [...hubs, again])
      expect(announcerEvents(one).filter(({ event }) => event === 'renamed')).toEqual([]);
    await Promise.all([again.stop(), hubs[1].stop()]);
  });
});

describe('the hub beside misbehaving devices', () => {
  // The hub repeats nothing, and nobody queries it: what it sends is caused by the other device.
  setUpOnce(
    async () => {
      await waitForAnnouncerEvent(announceOn(lan.hosts.hub, { repeats: false }), 'ready');
    },
    { skipReason },
  );

  it('the hub announces its service again at once when another device sends a goodbye for it', async () => {
    const responses = await responsesOf(lan.hosts.hub);
    await send(1, 'goodbye', 'Cellar hub');
    // Records that nobody contradicts are dropped after a second (RFC 6762, 10.1).
    await expect.poll(() => textOf(responses())).toContain('capk=');
  });

  it('the hub groups its responses to a thousand queries, and still responds to later ones', async () => {
    const responses = await responsesOf(lan.hosts.hub);
    await send(20, 'questions');
    await expect.poll(() => responses().length).toBeGreaterThan(0);
    expect(responses().length).toBeLessThan(10);
    await expect
      .poll(async () => {
        const before = responses().length;
        await send(1, 'questions');
        return responses().length > before;
      })
      .toBe(true);
    expect(responses().length).toBeLessThan(20);
  });

  it('the hub ignores a packet that is larger than mDNS permits', async () => {
    const responses = await responsesOf(lan.hosts.hub);
    await send(1, 'large', '9400');
    // A responder that read both packets would answer the first one first.
    await send(1, 'questions');
    await expect.poll(() => responses().length).toBeGreaterThan(0);
    expect(textOf(responses())).not.toContain('_services');
    await send(1, 'large', '8900');
    await expect.poll(() => textOf(responses())).toContain('_services');
  });
});

async function send(times: number, ...what: readonly string[]): Promise<void> {
  const script = join(import.meta.dirname, '../netns/mdns-sender.ts');
  const { peer } = lan.hosts;
  await peer.run(process.execPath, [script, peer.address, String(times), '0', ...what]);
}

import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type AnnouncerEvent,
  announceOn,
  announcerEvents,
  changeAnnouncement,
  waitForAnnouncerEvent,
} from '../../netns/announcer-process.ts';
import { OBSERVER_TOOLS, observeWithZeroconf, startAvahi } from '../../netns/observers.ts';
import { createLan, type Lan, lanSkipReason } from '../../support/netns.ts';
import { skipIfUnavailable } from '../../support/set-up.ts';

const OTHER = { id: 'bbbb11' };

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

let lan: Lan<'first' | 'second' | 'observer'>;
beforeEach(async () => {
  lan = await createLan(['first', 'second', 'observer']);
});
afterEach(() => lan[Symbol.asyncDispose]());

describe('a name that another hub has', () => {
  it('a hub adds a part of its id to a name that another hub has, and the other one keeps its name', async () => {
    const { first: peer, second: hub, observer } = lan.hosts;
    const zeroconf = await observeWithZeroconf(observer);
    const first = announceOn(peer, OTHER);
    await waitForAnnouncerEvent(first, 'ready');
    const second = announceOn(hub);
    await waitForAnnouncerEvent(second, 'ready');
    const ownService = await zeroconf.found(({ txt }) => txt['id'] === '4f2a9c');
    expect(ownService.instanceName).toBe('Cellar hub (4f2a)');
    await using avahi = await startAvahi(observer);
    const names = (await avahi.browseOnce()).map(({ instanceName, host }) => `${instanceName} at ${host}`);
    expect(names.toSorted()).toEqual(['Cellar hub (4f2a) at 4f2a9c.local', 'Cellar hub at bbbb11.local']);

    await second.stop();
    await zeroconf.gone('Cellar hub (4f2a)');
    expect(zeroconf.losses()).toEqual(['Cellar hub (4f2a)']);
  });
});

describe('two joined networks with the same name on both', () => {
  it('one of two hubs with the same name takes another name when their networks join, and no record is removed', async () => {
    const { first: lesser, second: greater, observer } = lan.hosts;
    await lesser.isolate('on');
    await greater.isolate('on');
    const zeroconf = await observeWithZeroconf(observer);
    await using avahi = await startAvahi(observer);
    const avahiBrowser = avahi.browse();
    const winner = announceOn(greater, OTHER);
    expect((await waitForAnnouncerEvent(winner, 'ready')).name).toBe('Cellar hub');
    // One after the other: a browser that sees two hosts of one name within a second may keep either (RFC 6762, 10.2).
    for (const one of [zeroconf, avahiBrowser]) await one.found(({ txt }) => txt['id'] === 'bbbb11');
    const loser = announceOn(lesser);
    expect((await waitForAnnouncerEvent(loser, 'ready')).name).toBe('Cellar hub');

    await lesser.isolate('off');
    // A new browser makes both hubs respond.
    const later = await observeWithZeroconf(observer);
    expect((await waitForAnnouncerEvent(loser, 'renamed')).name).toBe('Cellar hub (4f2a)');
    for (const one of [zeroconf, avahiBrowser, later]) {
      await one.found(({ instanceName, txt }) => instanceName === 'Cellar hub (4f2a)' && txt['id'] === '4f2a9c');
    }
    const hosts = async () =>
      (await avahi.browseOnce()).map(({ instanceName, host }) => `${instanceName} at ${host}`).toSorted();
    const expected = ['Cellar hub (4f2a) at 4f2a9c.local', 'Cellar hub at bbbb11.local'];
    await expect.poll(hosts).toEqual(expected);

    // The hub that lost the name leaves at once: its goodbye must not remove the other hub's record.
    await loser.stop();
    await Promise.all([zeroconf, avahiBrowser].map((one) => one.gone('Cellar hub (4f2a)')));
    expect(await hosts()).toEqual(expected.slice(1));
    for (const one of [zeroconf, avahiBrowser, later]) expect(one.losses()).not.toContain('Cellar hub');
    expect(announcerEvents(winner).map(({ event }) => event)).toEqual(['started', 'ready']);
  });

  it("a hub that is a copy of the other one's SD card reports that, and is not announced", async () => {
    const { first: original, second: copy, observer } = lan.hosts;
    await original.isolate('on');
    await copy.isolate('on');
    const hubs = [announceOn(original, { copies: true }), announceOn(copy)] as const;
    for (const hub of hubs) await waitForAnnouncerEvent(hub, 'ready');
    await original.isolate('off');
    await observeWithZeroconf(observer);
    // The greater address keeps the id.
    expect((await waitForAnnouncerEvent(hubs[0], 'lost')).message).toContain('another hub on this network (10.77.0.2');
    changeAnnouncement(hubs[0]);
    await hubs[0].errorLine((line) => line.includes('hub_id_taken') || undefined);
    expect(announcerEvents(hubs[1]).map(({ event }) => event)).toEqual(['started', 'ready']);
    await hubs[1].stop();
    expect((await waitForAnnouncerEvent(announceOn(original), 'ready')).name).toBe('Cellar hub');
  });

  it('a device that claims the host of a hub without its key does not silence it, and the hub checks the device', async () => {
    const { first: hub, second: other, observer } = lan.hosts;
    await hub.isolate('on');
    await other.isolate('on');
    const announcing = announceOn(hub);
    await waitForAnnouncerEvent(announcing, 'ready');
    const claimant = announceOn(other, { instanceName: 'Attic hub', httpsPort: 9443 });
    await waitForAnnouncerEvent(claimant, 'ready');
    await hub.isolate('off');
    const zeroconf = await observeWithZeroconf(observer);
    expect(await waitForAnnouncerEvent(announcing, 'renamed')).toMatchObject({
      name: 'Cellar hub',
      host: '4f2a9c-2.local',
      claimed: expect.stringContaining("(10.77.0.2, fd77::2) claims the hub's name 4f2a9c.local"),
    });
    expect(await waitForAnnouncerEvent(announcing, 'checked')).toMatchObject({ address: '10.77.0.2', port: 9443 });
    const renamed = await zeroconf.found(({ host }) => host === '4f2a9c-2.local');
    expect(renamed).toMatchObject({ instanceName: 'Cellar hub', addresses: ['10.77.0.1', 'fd77::1'] });
    expect(renamed.txt['id']).toBe('4f2a9c');

    const sender = join(import.meta.dirname, '../../netns/mdns-sender.ts');
    const ownRecord = ['20', '200', 'service', 'Cellar hub', '4f2a9c-2.local', 'on input'];
    const late = observer.spawn(process.execPath, [sender, observer.address, ...ownRecord]);
    await late.line((line) => line === 'ready' || undefined);

    // The hub takes its own name again when it is free.
    await claimant.stop();
    changeAnnouncement(announcing);
    const again = await announcing.line((line) => {
      const event: AnnouncerEvent = JSON.parse(line);
      return event.event === 'ready' && event.at > renamed.at ? event : undefined;
    });
    expect(again).toMatchObject({ name: 'Cellar hub', host: '4f2a9c.local', claimed: null });

    // The hub receives its own earlier record late, as on a busy machine: no other host has the name of its service.
    late.child.stdin?.write('now\n');
    await late.line((line) => line === 'sent' || undefined);
    expect(announcerEvents(announcing).filter(({ event }) => event === 'renamed')).toHaveLength(1);
    const later = await observeWithZeroconf(observer);
    expect(await later.found()).toMatchObject({ host: '4f2a9c.local', addresses: ['10.77.0.1', 'fd77::1'] });
    expect(zeroconf.losses()).not.toContain('Cellar hub');
  });
});

describe('the hub beside avahi-daemon on the same machine', () => {
  it('the hub and the names of avahi-daemon on the same machine are all found', async () => {
    const { first: hub, observer } = lan.hosts;
    await using onHub = await startAvahi(hub, 'cellarpi');
    await using avahi = await startAvahi(observer);
    const zeroconf = await observeWithZeroconf(observer);
    const announcing = announceOn(hub);
    expect((await waitForAnnouncerEvent(announcing, 'ready')).name).toBe('Cellar hub');
    expect((await zeroconf.found()).host).toBe('4f2a9c.local');
    expect(await avahi.browseOnce()).toMatchObject([{ instanceName: 'Cellar hub', addresses: ['10.77.0.1'] }]);
    expect(await onHub.browseOnce()).toMatchObject([{ instanceName: 'Cellar hub' }]);
    expect(await avahi.resolve('cellarpi.local')).toBe('10.77.0.1');
    expect(await avahi.resolve('4f2a9c.local')).toBe('10.77.0.1');

    expect(await announcing.stop()).toBe(0);
    await zeroconf.gone('Cellar hub');
    expect(await avahi.resolve('cellarpi.local')).toBe('10.77.0.1');
    expect(onHub.said).not.toMatch(/conflict|withdraw/i);
  });
});

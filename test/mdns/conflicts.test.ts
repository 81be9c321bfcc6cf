import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type AnnouncerEvent,
  announceOn,
  announcerEvents,
  changeAnnouncement,
  waitForAnnouncerEvent,
} from '../netns/announcer-process.ts';
import { OBSERVER_TOOLS, observeWithZeroconf, startAvahi } from '../netns/observers.ts';
import { createLan, lanSkipReason } from '../support/netns.ts';
import { skipIfUnavailable } from '../support/set-up.ts';

const OTHER = { id: 'bbbb11' };

skipIfUnavailable(() => lanSkipReason(OBSERVER_TOOLS));

describe('a name that another hub has', () => {
  it('a hub adds a part of its id to a name that another hub has, and the other one keeps its name', async () => {
    await using lan = await createLan(['neighbour', 'hub', 'observer']);
    const { neighbour, hub, observer } = lan.hosts;
    const watching = await observeWithZeroconf(observer);
    const first = announceOn(neighbour, OTHER);
    await waitForAnnouncerEvent(first, 'ready');
    const second = announceOn(hub);
    await waitForAnnouncerEvent(second, 'ready');
    const mine = await watching.found(({ txt }) => txt['id'] === '4f2a9c');
    expect(mine.instanceName).toBe('Cellar hub (4f2a)');
    await using avahi = await startAvahi(observer);
    const names = (await avahi.browseOnce()).map(({ instanceName, host }) => `${instanceName} at ${host}`);
    expect(names.toSorted()).toEqual(['Cellar hub (4f2a) at 4f2a9c.local', 'Cellar hub at bbbb11.local']);

    await second.stop();
    await watching.gone('Cellar hub (4f2a)');
    expect(watching.losses()).toEqual(['Cellar hub (4f2a)']);
  });

  it('two hubs that start at once with the same name agree who gets it', async () => {
    await using lan = await createLan(['neighbour', 'hub', 'observer']);
    const { neighbour, hub, observer } = lan.hosts;
    const watching = await observeWithZeroconf(observer);
    const both = [announceOn(neighbour, OTHER), announceOn(hub)];
    const names = await Promise.all(both.map(async (one) => (await waitForAnnouncerEvent(one, 'ready')).name));
    expect(names.toSorted()).toEqual(['Cellar hub', 'Cellar hub (4f2a)']);
    for (const name of names) await watching.found(({ instanceName }) => instanceName === name);
    expect(watching.losses()).toEqual([]);
  });

  it('a hub that joins the network of another one and stops at once does not remove its record', async () => {
    await using lan = await createLan(['neighbour', 'hub', 'observer']);
    const { neighbour, hub, observer } = lan.hosts;
    await neighbour.isolate('on');
    await hub.isolate('on');
    const watching = await observeWithZeroconf(observer);
    const [theirs, ours] = [announceOn(neighbour, { id: '00aa11' }), announceOn(hub)];
    await Promise.all([waitForAnnouncerEvent(theirs, 'ready'), waitForAnnouncerEvent(ours, 'ready')]);
    await watching.found();
    await hub.plug('down');
    await hub.isolate('off');
    await hub.plug('up');
    changeAnnouncement(ours);
    await hub.run('sleep', ['0.3']);
    expect(await ours.stop(), ours.output).toBe(0);
    await using avahi = await startAvahi(observer);
    const names = (await avahi.browseOnce()).map(({ instanceName, host }) => `${instanceName} at ${host}`);
    expect(names).toEqual(['Cellar hub at 00aa11.local']);
    expect(watching.losses()).not.toContain('Cellar hub');
  });

  it('a restarted hub gets its name again at once', async () => {
    await using lan = await createLan(['hub']);
    const first = announceOn(lan.hosts.hub);
    await waitForAnnouncerEvent(first, 'ready');
    const [second] = await Promise.all([waitForAnnouncerEvent(announceOn(lan.hosts.hub), 'ready'), first.stop()]);
    expect(second.name).toBe('Cellar hub');
  });
});

describe('two joined networks with the same name on both', () => {
  it('one of two hubs with the same name takes another name when their networks join, and no record is removed', async () => {
    await using lan = await createLan(['lesser', 'greater', 'observer']);
    const { lesser, greater, observer } = lan.hosts;
    await lesser.isolate('on');
    await greater.isolate('on');
    const watching = await observeWithZeroconf(observer);
    await using avahi = await startAvahi(observer);
    const browsing = avahi.browse();
    const winner = announceOn(greater, OTHER);
    expect((await waitForAnnouncerEvent(winner, 'ready')).name).toBe('Cellar hub');
    // One after the other: who hears of two hosts of one name within a second may keep either (RFC 6762 section 10.2).
    for (const one of [watching, browsing]) await one.found(({ txt }) => txt['id'] === 'bbbb11');
    const loser = announceOn(lesser);
    expect((await waitForAnnouncerEvent(loser, 'ready')).name).toBe('Cellar hub');

    await lesser.isolate('off');
    // Something that makes both speak: a host that looks for hubs.
    const later = await observeWithZeroconf(observer);
    expect((await waitForAnnouncerEvent(loser, 'renamed')).name).toBe('Cellar hub (4f2a)');
    for (const one of [watching, browsing, later]) {
      await one.found(({ instanceName, txt }) => instanceName === 'Cellar hub (4f2a)' && txt['id'] === '4f2a9c');
    }
    const hosts = async () =>
      (await avahi.browseOnce()).map(({ instanceName, host }) => `${instanceName} at ${host}`).toSorted();
    const expected = ['Cellar hub (4f2a) at 4f2a9c.local', 'Cellar hub at bbbb11.local'];
    await expect.poll(hosts).toEqual(expected);

    // The one that lost the name leaves at once: its goodbye must not take the other one's record away.
    await loser.stop();
    await Promise.all([watching, browsing].map((one) => one.gone('Cellar hub (4f2a)')));
    expect(await hosts()).toEqual(expected.slice(1));
    for (const one of [watching, browsing, later]) expect(one.losses()).not.toContain('Cellar hub');
    expect(announcerEvents(winner).map(({ event }) => event)).toEqual(['started', 'ready']);
  });

  it('avahi takes another name when the networks join, if its data is the lesser one', async () => {
    await using lan = await createLan(['hub', 'other', 'observer']);
    const { hub, other, observer } = lan.hosts;
    await hub.isolate('on');
    await other.isolate('on');
    await using avahi = await startAvahi(other, 'atticpi');
    const published = avahi.publish('Cellar hub', 1234);
    await published.errorLine((line) => line.includes('Established') || undefined);
    const announcing = announceOn(hub);
    expect((await waitForAnnouncerEvent(announcing, 'ready')).name).toBe('Cellar hub');
    const watching = await observeWithZeroconf(observer);
    await hub.isolate('off');
    await observeWithZeroconf(observer);
    const renamed = () => published.output.split('new name').length - 1;
    await expect.poll(renamed).toBe(1);
    const theirs = await watching.found(({ port, instanceName }) => port === 1234 && instanceName !== 'Cellar hub');
    expect(theirs.host).toBe('atticpi.local');
    expect(renamed()).toBe(1);
    expect(announcerEvents(announcing).map(({ event }) => event)).toEqual(['started', 'ready']);
    expect(watching.losses()).toEqual([]);
  });

  it("a hub that is a copy of the other one's SD card reports that, and is not announced", async () => {
    await using lan = await createLan(['original', 'copy', 'observer']);
    const { original, copy, observer } = lan.hosts;
    await original.isolate('on');
    await copy.isolate('on');
    const hubs = [announceOn(original, { copies: true }), announceOn(copy)] as const;
    for (const hub of hubs) await waitForAnnouncerEvent(hub, 'ready');
    await original.isolate('off');
    await observeWithZeroconf(observer);
    // The greater address stays.
    expect((await waitForAnnouncerEvent(hubs[0], 'lost')).message).toContain('another hub on this network (10.77.0.2');
    changeAnnouncement(hubs[0]);
    await hubs[0].errorLine((line) => line.includes('hub_id_taken') || undefined);
    expect(announcerEvents(hubs[1]).map(({ event }) => event)).toEqual(['started', 'ready']);
    await hubs[1].stop();
    expect((await waitForAnnouncerEvent(announceOn(original), 'ready')).name).toBe('Cellar hub');
  });

  it('a device that claims the host of a hub without its key does not silence it, and the hub checks the device', async () => {
    await using lan = await createLan(['hub', 'other', 'observer']);
    const { hub, other, observer } = lan.hosts;
    await hub.isolate('on');
    await other.isolate('on');
    const announcing = announceOn(hub);
    await waitForAnnouncerEvent(announcing, 'ready');
    const claimant = announceOn(other, { instanceName: 'Attic hub', httpsPort: 9443 });
    await waitForAnnouncerEvent(claimant, 'ready');
    await hub.isolate('off');
    const watching = await observeWithZeroconf(observer);
    expect(await waitForAnnouncerEvent(announcing, 'renamed')).toMatchObject({
      name: 'Cellar hub',
      host: '4f2a9c-2.local',
      claimed: expect.stringContaining("(10.77.0.2, fd77::2) claims the hub's name 4f2a9c.local"),
    });
    expect(await waitForAnnouncerEvent(announcing, 'checked')).toMatchObject({ address: '10.77.0.2', port: 9443 });
    const seen = await watching.found(({ host }) => host === '4f2a9c-2.local');
    expect(seen).toMatchObject({ instanceName: 'Cellar hub', addresses: ['10.77.0.1', 'fd77::1'] });
    expect(seen.txt['id']).toBe('4f2a9c');

    const sender = join(import.meta.dirname, '../netns/mdns-sender.ts');
    const ownWords = ['20', '200', 'service', 'Cellar hub', '4f2a9c-2.local', 'when told'];
    const late = observer.spawn(process.execPath, [sender, observer.address, ...ownWords]);
    await late.line((line) => line === 'ready' || undefined);

    // It takes its own name back when that is free.
    await claimant.stop();
    changeAnnouncement(announcing);
    const again = await announcing.line((line) => {
      const said: AnnouncerEvent = JSON.parse(line);
      return said.event === 'ready' && said.at > seen.at ? said : undefined;
    });
    expect(again).toMatchObject({ name: 'Cellar hub', host: '4f2a9c.local', claimed: null });

    // What it said itself before comes back to it late, as on a machine that is busy: nobody else has its service's name.
    late.child.stdin?.write('now\n');
    await late.line((line) => line === 'sent' || undefined);
    expect(announcerEvents(announcing).filter(({ event }) => event === 'renamed')).toHaveLength(1);
    const later = await observeWithZeroconf(observer);
    expect(await later.found()).toMatchObject({ host: '4f2a9c.local', addresses: ['10.77.0.1', 'fd77::1'] });
    expect(watching.losses()).not.toContain('Cellar hub');
  });
});

describe('the hub beside avahi-daemon on the same machine', () => {
  it('the hub and the names of avahi-daemon on the same machine are all found', async () => {
    await using lan = await createLan(['hub', 'observer']);
    const { hub, observer } = lan.hosts;
    await using onHub = await startAvahi(hub, 'cellarpi');
    await using avahi = await startAvahi(observer);
    const watching = await observeWithZeroconf(observer);
    const announcing = announceOn(hub);
    expect((await waitForAnnouncerEvent(announcing, 'ready')).name).toBe('Cellar hub');
    expect((await watching.found()).host).toBe('4f2a9c.local');
    expect(await avahi.browseOnce()).toMatchObject([{ instanceName: 'Cellar hub', addresses: ['10.77.0.1'] }]);
    expect(await onHub.browseOnce()).toMatchObject([{ instanceName: 'Cellar hub' }]);
    expect(await avahi.resolve('cellarpi.local')).toBe('10.77.0.1');
    expect(await avahi.resolve('4f2a9c.local')).toBe('10.77.0.1');

    expect(await announcing.stop()).toBe(0);
    await watching.gone('Cellar hub');
    expect(await avahi.resolve('cellarpi.local')).toBe('10.77.0.1');
    expect(onHub.said).not.toMatch(/conflict|withdraw/i);
  });
});

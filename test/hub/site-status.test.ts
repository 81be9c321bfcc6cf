import { describe, expect, it } from 'vitest';
import type { SiteHub } from '../../src/core/site.ts';
import { findHubToRemove, findMissingHubs, siteStatus } from '../../src/hub/site/site-status.ts';

const NOW = Date.parse('2031-05-05T08:00:00Z');
const MINUTE = 60_000;

function hub(name: string, changes: Partial<SiteHub> = {}): SiteHub {
  const id = `latchkey-${name}`;
  return { id, name, address: '10.0.0.7', version: '1.2.3', lastSeen: NOW, isAlive: true, ...changes };
}

/** The site of the hub `attic`. */
function site(...others: SiteHub[]) {
  return { siteId: 'site-1', hubId: 'latchkey-attic', hubs: [hub('attic'), ...others] };
}

describe('the hubs of a site', () => {
  it('the status has the hubs by name, and marks the own one', () => {
    const { id, hubs } = siteStatus(site(hub('garage', { address: null }), hub('Cellar')));
    expect(id).toBe('site-1');
    expect(hubs.map(({ name, address, thisHub }) => [name, address, thisHub])).toEqual([
      ['attic', '10.0.0.7', true],
      ['Cellar', '10.0.0.7', undefined],
      ['garage', null, undefined],
    ]);
    expect(hubs[0]?.lastSeen).toBe('2031-05-05T08:00:00Z');
  });

  it('a hub is missing when it was not seen for ten minutes before the newest heartbeat', () => {
    const late = (minutes: number) => hub('cellar', { lastSeen: NOW - minutes * MINUTE, isAlive: false });
    expect(findMissingHubs(site())).toBeNull();
    expect(findMissingHubs(site(late(9.9)))).toBeNull();
    expect(findMissingHubs(site(late(10)))).toEqual({
      message: 'A hub of the site has not been seen: cellar (latchkey-cellar) since 2031-05-05T07:50:00Z',
      since: '2031-05-05T07:50:00Z',
    });
    const both = site(late(30), hub('garage', { lastSeen: NOW - 20 * MINUTE, isAlive: false }));
    expect(findMissingHubs(both)).toEqual({
      message:
        '2 hubs of the site have not been seen: cellar (latchkey-cellar) since 2031-05-05T07:30:00Z, garage (latchkey-garage) since 2031-05-05T07:40:00Z',
      since: '2031-05-05T07:30:00Z',
    });
  });

  it('no hub is missing because the database, and so every heartbeat, is away', () => {
    const hubs = [hub('attic', { lastSeen: NOW - 90 * MINUTE }), hub('cellar', { lastSeen: NOW - 91 * MINUTE })];
    expect(findMissingHubs({ ...site(), hubs })).toBeNull();
  });

  it('a hub is removed by its id, or by a name that no other has, unless it runs', () => {
    const gone = { isAlive: false };
    const hubs = site(
      hub('cellar', gone),
      hub('twin', { ...gone, id: 'a' }),
      hub('twin', { ...gone, id: 'b' }),
      hub('garage'),
    );
    expect(findHubToRemove(hubs, 'cellar').id).toBe('latchkey-cellar');
    expect(findHubToRemove(hubs, 'b').id).toBe('b');
    expect(() => findHubToRemove(hubs, 'twin')).toThrow('several hubs of the site are called twin');
    expect(() => findHubToRemove(hubs, 'garage')).toThrow('the hub garage is running');
    expect(() => findHubToRemove(hubs, 'attic')).toThrow('the hub attic is running');
    expect(() => findHubToRemove(hubs, 'nobody')).toThrow('the site has no hub nobody');
  });
});

import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { DECIDE, DECISIONS, RELAY, stateFor } from './relay-addresses.ts';

/** The content of the only element of this name. */
function contentOf(element: string): string {
  const contents = [...RELAY.matchAll(new RegExp(`<${element}>(.*?)</${element}>`, 'gs'))];
  expect(contents, element).toHaveLength(1);
  return contents[0]?.[1] ?? '';
}

it('the policy of the relay allows its own script and style by their hashes, and nothing else', () => {
  const hashOf = (element: string) => `'sha256-${createHash('sha256').update(contentOf(element)).digest('base64')}'`;
  const [, policy] = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(RELAY) ?? [];
  expect(policy).toBe(
    `default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src ${hashOf('script')}; style-src ${hashOf('style')}`,
  );
  // A policy applies only to what comes after it.
  expect(RELAY.indexOf('Content-Security-Policy')).toBeLessThan(RELAY.search(/<(?:script|style|link)\b/));
  expect(RELAY).toContain('<meta name="referrer" content="no-referrer">');
  expect(RELAY).toContain('<meta name="robots" content="noindex">');
  expect(RELAY).not.toMatch(/sessionStorage|cookie|indexedDB|fetch\(|XMLHttp|sendBeacon|style="|\son\w+="/);
});

it('the relay forwards to every kind of address on a home network, and to no other', () => {
  // What follows uses the page. The same decisions in two browsers: test/release/browser/relay.test.ts.
  const [decisions = ''] = contentOf('script').split('\nfunction show(');
  const decided: unknown = JSON.parse(runInNewContext(`${decisions}\n${DECIDE}`, { URL, URLSearchParams, atob }));
  expect(decided).toEqual(DECISIONS);
});

/**
 * Runs the script of the page as a browser does.
 * @param storage what the browser keeps for the page; null: it keeps nothing
 */
function visit(address: string, storage: Map<string, string> | null) {
  const elements = new Map<string, { textContent: string; hidden: boolean; listener?: (event: object) => void }>();
  const find = (name: string) => {
    const found = elements.get(name) ?? { textContent: '', hidden: true };
    elements.set(name, found);
    const addEventListener = (_: string, listener: (event: object) => void) => Object.assign(found, { listener });
    return Object.assign(found, { addEventListener });
  };
  const kept = () => {
    if (storage === null) throw new Error('the browser keeps nothing');
    return storage;
  };
  const [forwarded, later]: [string[], (() => void)[]] = [[], []];
  const window = { top: {} };
  window.top = window;
  runInNewContext(contentOf('script'), {
    URL,
    URLSearchParams,
    atob,
    window,
    navigator: { language: 'en' },
    location: { search: `?code=1&state=${stateFor(address)}`, replace: (url: string) => forwarded.push(url) },
    localStorage: {
      getItem: (key: string) => kept().get(key) ?? null,
      setItem: (key: string, value: string) => kept().set(key, value),
    },
    document: { body: {}, documentElement: {}, getElementById: find, querySelector: find },
    setTimeout: (run: () => void) => later.push(run),
  });
  return {
    heading: find('heading').textContent,
    isLinkShown: !find('continue').hidden,
    /** Where it has gone. */
    forwarded,
    /** What it does later by itself. */
    later,
    tap: () => find('a').listener?.({ preventDefault: () => undefined }),
  };
}

it.each<[string, Map<string, string> | null]>([
  ['that keeps what the page stores', new Map()],
  ['that keeps nothing', null],
  ['in which something else was stored', new Map([['latchkey-hubs', '{"no": "list"}']])],
])('the relay forwards only after a tap to an address that a browser %s has not gone on to before', (_, storage) => {
  const [hub, other] = ['http://192.168.1.20:8480/callback', 'http://192.168.1.66:8480/callback'];
  const first = visit(hub, storage);
  expect(first).toMatchObject({ heading: 'Is 192.168.1.20 your hub?', isLinkShown: true, forwarded: [], later: [] });
  first.tap();
  expect(first.forwarded).toEqual([`${hub}?code=1&state=${stateFor(hub)}`]);

  const again = visit(hub, storage);
  for (const run of again.later) run();
  expect(again.forwarded).toEqual(storage === null ? [] : first.forwarded);
  expect([...(storage?.values() ?? [])]).toEqual(storage === null ? [] : [JSON.stringify([hub])]);
  // Not even another port of the same address.
  for (const address of [other, 'http://192.168.1.20:8481/callback', 'https://192.168.1.20:8480/callback']) {
    expect(visit(address, storage).later).toEqual([]);
  }
});

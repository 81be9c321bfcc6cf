import { createHash } from 'node:crypto';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { DECIDE, DECISIONS, RELAY } from './relay-addresses.ts';

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
  expect(RELAY).not.toMatch(
    /localStorage|sessionStorage|cookie|indexedDB|fetch\(|XMLHttp|sendBeacon|style="|\son\w+="/,
  );
});

it('the relay forwards to every kind of address on a home network, and to no other', () => {
  // What follows uses the page. The same decisions in two browsers: test/release/browser/relay.test.ts.
  const [decisions = ''] = contentOf('script').split('\nfunction show(');
  const decided: unknown = JSON.parse(runInNewContext(`${decisions}\n${DECIDE}`, { URL, URLSearchParams, atob }));
  expect(decided).toEqual(DECISIONS);
});

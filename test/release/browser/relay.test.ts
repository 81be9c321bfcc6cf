import type { BrowserContextOptions } from 'playwright-core';
import { beforeEach, describe, expect, it } from 'vitest';
import { DECIDE, DECISIONS, RELAY, stateFor } from '../../page/relay-addresses.ts';
import {
  type Browser,
  browserSkipReason,
  DESKTOP,
  PHONE,
  SMALL_PHONE,
  startBrowser,
  type Visit,
} from '../../support/browser.ts';
import { type Firefox, firefoxSkipReason, startFirefox } from '../../support/firefox.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectUsable } from '../../support/usability.ts';
import { waitFor } from '../../support/wait-for.ts';
import { type RelayNetwork, startRelayNetwork } from './relay-network.ts';

/** How long the relay shows the hub's address, in ms. */
const PAUSE = /const PAUSE = (\d+);/.exec(RELAY)?.[1];
const RELAY_URL = 'https://relay.example/relay.html';

/** Source of a function that makes a page forward without a pause. */
const FORWARD_AT_ONCE = '() => { const later = setTimeout; globalThis.setTimeout = (run) => later(run, 0); }';
/** Source of a function with which a page never forwards by itself. Other timers go on: axe needs them. */
const NEVER_FORWARD = `() => {
  const later = setTimeout;
  globalThis.setTimeout = (run, ms, ...values) => (ms === ${PAUSE} ? 0 : later(run, ms, ...values));
}`;

/** A tab of Chromium or Firefox. */
type Tab = Firefox;

/** What a browser needs to reach the hub directly, and everything else through the network's proxy. */
function through({ proxyPort }: RelayNetwork): BrowserContextOptions {
  // Playwright's second rule sends the rest of loopback through the proxy as well.
  const proxy = { server: `http://127.0.0.1:${proxyPort}`, bypass: '127.0.0.1,<-loopback>' };
  return { ignoreHTTPSErrors: true, proxy };
}

async function openChromiumTab(browser: Browser, network: RelayNetwork): Promise<Tab> {
  const visit = await browser.visit({ ...PHONE, ...through(network) });
  return {
    open: (url) => visit.page.goto(url, { waitUntil: 'domcontentloaded' }).then(() => undefined),
    evaluate: (expression) => visit.page.evaluate(expression),
    runBeforeScripts: (source) => visit.page.addInitScript(`(${source})()`).then(() => undefined),
    [Symbol.asyncDispose]: () => visit[Symbol.asyncDispose](),
  };
}

const HEADING = "document.querySelector('#heading').textContent";

/** Source of a function that lets the browser know the hubs of the tests already. */
const confirmed = (...callbacks: readonly string[]) =>
  `() => { if (location.hostname === 'relay.example') localStorage.setItem('latchkey-hubs', ${JSON.stringify(JSON.stringify(callbacks))}); }`;

/** Addresses, each with the request that arrives, and last with that to a host that does not exist. */
const ARRIVING = [
  ['http://192.168.1.20:8480/callback', 'http://192.168.1.20:8480/callback?'],
  ['http://[fd12:3456:789a:1:2:3:4:5]:8480/callback', 'http://[fd12:3456:789a:1:2:3:4:5]:8480/callback?'],
  // Another notation: the browser reads it alike when it judges and when it connects.
  ['http://0300.0250.1.024/callback', 'http://192.168.1.20/callback?'],
  // Last, because the browser's page about the failed connection may appear late.
  ['https://10.0.0.5:8443/callback', 'CONNECT 10.0.0.5:8443'],
] as const;

/** Waits until the tab shows a page with this heading. */
function waitForHeading(tab: Tab, heading: string): Promise<void> {
  return waitFor(async () => expect(await tab.evaluate(HEADING)).toBe(heading));
}

/** Evaluates what makes the tab leave its page, which may be gone before the browser can respond. */
function leave(tab: Tab, expression: string): Promise<unknown> {
  return tab.evaluate(expression).catch(() => undefined);
}

describe.each(['Chromium', 'Firefox'])('the relay in %s', (name) => {
  let network: RelayNetwork;
  let openTab: () => Promise<Tab>;

  setUpOnce(
    async (parts) => {
      network = parts.use(await startRelayNetwork());
      if (name === 'Firefox') {
        openTab = () => startFirefox(network.proxyPort);
      } else {
        const browser = parts.use(await startBrowser());
        openTab = () => openChromiumTab(browser, network);
      }
    },
    { skipReason: name === 'Firefox' ? firefoxSkipReason : browserSkipReason },
  );
  beforeEach(() => void network?.arrived.splice(0));

  /** The requests that went to any other place than the relay. */
  const forwarded = () => network.arrived.map(({ url }) => url).filter((url) => !url.startsWith(RELAY_URL));

  it('the response of a cloud arrives at the hub byte for byte, without a referrer, and leaves the history', async () => {
    await using tab = await openTab();
    await tab.runBeforeScripts(confirmed(network.callback));
    const code = 'code=a%2Fb%2b+c%20d==&iss=https%3A%2F%2Fcloud.example&empty=&flag&u=%E4%BD%A0%FF&q=a?b/~!*()';
    const state = stateFor(network.callback);
    for (const address of [
      `https://cloud.example/authorize?${code}&state=${state}`,
      `https://cloud.example/authorize?error=access_denied&error_description=No%2C+thanks&state=${state}`,
      // Only from one address of plain HTTP to another would a browser send a referrer on its own.
      `http://relay.example/relay.html?${code}&state=${state}`,
    ]) {
      network.arrived.splice(0);
      await tab.open('https://cloud.example/');
      await tab.open(address);
      await waitForHeading(tab, 'Hub');
      const toHub = network.arrived.filter(({ url }) => !url.includes('/relay.html'));
      expect(toHub.map(({ url }) => url)).toEqual([network.callback + address.slice(address.indexOf('?'))]);
      expect(toHub[0]?.headers.referer).toBeUndefined();
      await leave(tab, 'void history.back()');
      await waitForHeading(tab, 'Cloud');
    }
  });

  it('the relay goes to a hub that the browser does not know only by its link, and the next time by itself', async () => {
    await using tab = await openTab();
    await tab.open('https://cloud.example/');
    const query = `?code=1&state=${stateFor(network.callback)}`;
    await tab.open(`${RELAY_URL}${query}`);
    await waitForHeading(tab, 'Is 127.0.0.1 your hub?');
    expect(await tab.evaluate('document.querySelector("main").innerText')).toContain(network.callback);
    expect(forwarded()).toEqual([]);
    expect(await tab.evaluate('document.querySelector("a").href')).toBe(`${network.callback}${query}`);
    await leave(tab, 'document.querySelector("a").click()');
    await waitForHeading(tab, 'Hub');
    expect(forwarded()).toEqual([`${network.callback}${query}`]);
    await leave(tab, 'void history.back()');
    await waitForHeading(tab, 'Cloud');
    await tab.open(`${RELAY_URL}${query}`).catch(() => undefined);
    await waitForHeading(tab, 'Hub');
  });

  it('the relay forwards to a private address of each kind as the browser parses it, and to no other', async () => {
    await using tab = await openTab();
    await tab.runBeforeScripts(FORWARD_AT_ONCE);
    await tab.runBeforeScripts(confirmed(...ARRIVING.map(([address]) => `${new URL(address).origin}/callback`)));
    await tab.open(RELAY_URL);
    expect(JSON.parse(String(await tab.evaluate(DECIDE)))).toEqual(DECISIONS);

    for (const [query, reason] of [
      [`?code=1&state=${stateFor('http://192.168.1.20@evil.example/callback')}`, 'does not forward to this address'],
      ['?code=1', 'does not name a hub'],
    ] as const) {
      await tab.open(`${RELAY_URL}${query}`);
      const links = "document.querySelectorAll('a[href]').length";
      expect(await tab.evaluate(`document.body.innerText.trim() + ' Links: ' + ${links}`)).toMatch(
        new RegExp(`^Not forwarded\\s[^]*${reason}[^]* Links: 0$`),
      );
    }
    // Whatever a page has begun, the next document of the tab comes after it.
    await tab.open('https://cloud.example/');
    expect(forwarded()).toEqual([]);

    for (const [address, arrives] of ARRIVING) {
      const query = `code=1&state=${stateFor(address)}`;
      // The tab may leave the relay before the browser has reported it.
      await tab.open(`${RELAY_URL}?${query}`).catch(() => undefined);
      await waitFor(() => expect(forwarded()).toContain(arrives.endsWith('?') ? `${arrives}${query}` : arrives));
      if (arrives.endsWith('?')) await waitForHeading(tab, 'Hub');
    }
  });
});

const LOOKS: readonly [string, BrowserContextOptions][] = [
  ['phone', PHONE],
  ['phone-dark-german', { ...PHONE, colorScheme: 'dark', locale: 'de-AT' }],
  ['small-phone-german', { ...SMALL_PHONE, locale: 'de-DE' }],
  ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['phone-without-scripts', { ...PHONE, javaScriptEnabled: false }],
];

describe('the look of the relay', () => {
  let network: RelayNetwork;
  let browser: Browser;

  setUpOnce(
    async (parts) => {
      network = parts.use(await startRelayNetwork());
      browser = parts.use(await startBrowser());
    },
    { skipReason: browserSkipReason },
  );

  /** Opens the relay, held before it forwards. */
  async function show(options: BrowserContextOptions, query: string): Promise<Visit> {
    const visit = await browser.visit({ ...options, ...through(network) });
    await visit.page.addInitScript(`(${NEVER_FORWARD})()`);
    await visit.page.addInitScript(`(${confirmed('http://192.168.1.20:8480/callback')})()`);
    await visit.page.goto(`${RELAY_URL}${query}`);
    return visit;
  }

  it.each(LOOKS)('the relay is readable and usable (%s)', async (look, options) => {
    const longest = `http://${'a-very-long-name-of-a-hub'.repeat(2)}.kitchen.house.local:8480/callback`;
    const pages = [
      ['unknown', `?code=1&state=${stateFor('http://192.168.1.21:8480/callback')}`],
      ['forward', `?code=1&state=${stateFor('http://192.168.1.20:8480/callback')}`],
      ['long-name', `?code=1&state=${stateFor(longest)}`],
      ['foreign', `?code=1&state=${stateFor('http://192.168.1.20@evil.example/callback')}`],
      ['nameless', ''],
    ] as const;
    for (const [name, query] of pages) {
      await using visit = await show(options, query);
      await expectUsable(visit, `relay-${name}-${look}`);
      if (options.javaScriptEnabled === false) await visit.page.getByText('JavaScript is off').waitFor();
      else expect(await visit.page.getAttribute('html', 'lang')).toBe(options.locale === undefined ? 'en' : 'de');
      expect(visit.browserErrors).toEqual([]);
      expect(visit.origins).toEqual(['https://relay.example']);
    }
  });

  it('the relay does not forward in a frame of another site', async () => {
    await using visit = await browser.visit({ ...PHONE, ...through(network) });
    const { page } = visit;
    await page.addInitScript(`(${FORWARD_AT_ONCE})()`);
    await page.goto('https://cloud.example/');
    await page.setContent(`<iframe src="${RELAY_URL}?code=1&state=${stateFor(network.callback)}"></iframe>`);
    await page.frameLocator('iframe').getByText('Another website shows this page').waitFor();
    expect(network.arrived.filter(({ url }) => !url.startsWith(RELAY_URL))).toEqual([]);
  });
});

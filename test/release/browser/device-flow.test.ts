import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import type { EmulatorOptions } from '../../../src/emulator/index.ts';
import {
  type BrowserTestHub,
  expectPage,
  logIn,
  openTrustingVisit,
  resetBrowserTestHub,
  startBrowserTestHub,
} from '../../browser/browser-test-hub.ts';
import { basicAuthorization, FORM, HubClient, parseJsonBody } from '../../lan/hub-client.ts';
import { type Browser, browserSkipReason, DESKTOP, PHONE, SMALL_PHONE, startBrowser } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { selectNamedRows } from '../../support/long.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectUsable } from '../../support/usability.ts';

/** Where the documentation's screenshots go, if the run is to renew them. */
const IMAGES =
  process.env['LATCHKEY_DOCS_IMAGES'] === undefined ? null : join(import.meta.dirname, '../../../docs/images');
/** A link that is opened again within this time, in ms, stays the same. */
const SAME_LINK = 5000;

let browser: Browser;
let testHub: DeviceTestHub;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    testHub = parts.use(await start());
  },
  { skipReason: browserSkipReason },
);
afterEach(() => resetBrowserTestHub(testHub));

describe('the browser of a person with a user code', () => {
  it('a person opens the link of an appliance, logs in at the portal, and sees that the appliance is connected', async () => {
    await using visit = await openTrustingVisit(browser, PHONE);
    const { page } = visit;
    const { link, userCode } = await testHub.begin('wallbox');
    await page.goto(link);
    await expectPage(visit, 'device-confirm', 'Connect wallbox?');
    await page.getByText(userCode).waitFor();
    await page.getByText('RemoteControl').waitFor();
    if (IMAGES !== null) await writeFile(join(IMAGES, 'pair.png'), await page.screenshot({ scale: 'css' }));
    expect(testHub.configs()).toBe(0);
    await page.getByRole('button', { name: 'Continue' }).tap();
    await page.getByText('asks for access to your account').waitFor();
    await logIn(visit.page);
    await expectPage(visit, 'device-connected', 'wallbox is connected');
    expect(new URL(page.url()).protocol).toBe('http:');
    expect(await testHub.hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });

    await page.goto(link);
    await expectPage(visit, 'device-connected-again', 'wallbox is connected');
    expect(testHub.configs()).toBe(1);
    expect(visit.browserErrors).toEqual([]);
  });

  it('a person can type the user code without scripts, also after a mistake', async () => {
    await using visit = await openTrustingVisit(browser, { ...PHONE, javaScriptEnabled: false });
    const { page } = visit;
    const { userCode } = await testHub.begin('wallbox');
    await page.goto(`${testHub.origin}/pair`);
    await expectUsable(visit, 'device-type');
    expect(await page.getByLabel('Code').evaluate((field) => field === document.activeElement)).toBe(true);
    await page.keyboard.type('bbbb bbbb');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await expectUsable(visit, 'device-wrong');
    await page.getByLabel('Code').fill(` ${userCode.toLowerCase().replace('-', ' ')} `);
    await page.getByRole('button', { name: 'Continue' }).tap();
    await page.getByText('Connect wallbox?').waitFor();
    await page.getByRole('button', { name: 'Continue' }).tap();
    await logIn(visit.page);
    await page.getByText('wallbox is connected').waitFor();
    expect(visit.browserErrors).toEqual([]);
  });

  it('the button for the login works through all redirects of a portal that asks for nothing more', async () => {
    testHub.emulator.change({ autoLogin: true });
    await using visit = await openTrustingVisit(browser, PHONE);
    const { link } = await testHub.begin('wallbox');
    await visit.page.goto(link);
    await visit.page.getByRole('button', { name: 'Continue' }).tap();
    await visit.page.getByText('wallbox is connected').waitFor();
    expect(visit.browserErrors).toEqual([]);
  });

  it("a person who comes back after the portal's link has expired gets a fresh link from the same page", async () => {
    await using other = await start({ stateLifetime: 60 });
    await using visit = await openTrustingVisit(browser, PHONE);
    const { page } = visit;
    const { link } = await other.begin('wallbox');
    await page.goto(link);
    await page.getByRole('button', { name: 'Continue' }).tap();
    await page.getByText('asks for access to your account').waitFor();
    other.emulator.advance(61);
    await sleep(SAME_LINK + 500);
    await logIn(visit.page);
    await page.getByText('This link has expired').waitFor();
    await page.goto(link);
    await page.getByRole('button', { name: 'Continue' }).tap();
    await logIn(visit.page);
    await page.getByText('wallbox is connected').waitFor();
    expect(other.configs()).toBe(2);
    expect(other.emulator.observations).toMatchObject({ codesRepeated: 0 });
  });

  it('a person who refuses at the portal reads that the pairing can be started again on the appliance', async () => {
    await using visit = await openTrustingVisit(browser, PHONE);
    const { page } = visit;
    const { link } = await testHub.begin('wallbox');
    await page.goto(link);
    await page.getByRole('button', { name: 'Continue' }).tap();
    await page.getByRole('button', { name: 'Refuse' }).tap();
    await expectPage(visit, 'device-refused', 'wallbox is not connected');
    await page.goto(link);
    await expectPage(visit, 'device-refused-again', 'wallbox is not connected');
    await page.getByText('Start connecting again on the appliance').waitFor();
    expect(await page.getByText('latchkey pair').count()).toBe(0);
    expect(visit.browserErrors).toEqual([]);
  });

  it('a person keeps all attempts whatever another website makes the browser request', async () => {
    await using visit = await openTrustingVisit(browser, DESKTOP);
    const { page } = visit;
    const { link } = await testHub.begin('wallbox');
    const shortLink = await testHub.shortLink('heater');
    const letters = 'BCDFGHJKLMNP';
    const codes = [...letters].map((letter) => `${testHub.origin}/pair?user_code=BBBBBB${letter}B`);
    const addresses = [...codes, `${new URL(shortLink).origin}/l/${'A'.repeat(16)}`];
    const parts = addresses.map((address) => `<img src="${address}"><iframe src="${address}"></iframe>`);
    const script = `for (const address of ${JSON.stringify(addresses)}) fetch(address, { mode: 'no-cors' }).catch(() => {});`;
    const loading = `<div>${parts.join('')}</div><script>${script}</script>`;
    const links = [link, shortLink, ...codes].map((address, index) => `<a id="to${index}" href="${address}">Win</a>`);
    await using site = await startForeignSite((path) => (path === '/loading' ? loading : links.join('')));
    await page.goto(`${site.url}loading`, { waitUntil: 'load' });
    await page.goto(link);
    await page.getByText('Connect wallbox?').waitFor();
    await page.goto(shortLink);
    await page.getByText('asks for access to your account').waitFor();
    for (const index of codes.keys()) {
      await page.goto(`${site.url}links`);
      await page.locator(`#to${index + 2}`).click();
      await page.getByText('Continue only if your appliance shows this code').waitFor();
    }
    // Links in a mail or on the appliance's own page still work.
    await page.goto(`${site.url}links`);
    await page.locator('#to1').click();
    await page.getByText('asks for access to your account').waitFor();
    await page.goto(`${site.url}links`);
    await page.locator('#to0').click();
    await expectPage(visit, 'device-led-here', 'Continue only if your appliance shows this code');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByText('Connect wallbox?').waitFor();
  });
});

const WINDOWS: readonly [string, typeof PHONE][] = [
  ['on a desktop', DESKTOP],
  ['on a desktop in the dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['on a phone', PHONE],
  ['on a phone in the dark', { ...PHONE, colorScheme: 'dark' }],
  ['on a small phone', SMALL_PHONE],
];

describe('the legibility of the pages for user codes', () => {
  // Every width and both colour schemes; the tests above cover the phone in the light scheme.
  const short = ['on a desktop', 'on a phone in the dark', 'on a small phone'];
  it.each(selectNamedRows(WINDOWS, short))('the pages for user codes are legible %s', async (title, options) => {
    const name = 'a-heat-pump-with-a-name-that-goes-on-and-on-to-the-end-of-it';
    await using visit = await openTrustingVisit(browser, options);
    const { page } = visit;
    const { link } = await testHub.begin(name);
    await page.goto(`${testHub.origin}/pair`);
    await expectPage(visit, `${title}-type`, 'Type the code that the appliance shows');
    await page.goto(`${testHub.origin}/pair?user_code=BBBB-BBBB`);
    await expectPage(visit, `${title}-wrong`, 'No waiting appliance has this code');
    await page.goto(link);
    await expectPage(visit, `${title}-confirm`, `Connect ${name}?`);
    const fault = testHub.emulator.addFault({ kind: 'status', status: 503, endpoint: 'config', times: null });
    await page.getByRole('button', { name: 'Continue' }).click();
    await expectPage(visit, `${title}-unreachable`, 'The portal cannot be reached');
    testHub.emulator.removeFault(fault.id);
    expect(visit.browserErrors).toEqual([]);
  });
});

interface DeviceTestHub extends BrowserTestHub {
  /** How many links the hub has requested from the portal. */
  configs(): number;
  /** Adds an appliance and begins its pairing at the hub. @returns its short link */
  shortLink(name: string): Promise<string>;
  /** Adds an appliance, which starts a device flow. */
  begin(name: string): Promise<{ readonly link: string; readonly userCode: string }>;
}

async function start(options: EmulatorOptions = {}): Promise<DeviceTestHub> {
  const parts = new AsyncDisposableStack();
  const started = parts.use(await startBrowserTestHub(options));
  const { emulator, hub } = started;
  const client = parts.use(await HubClient.of(hub));
  return {
    ...started,
    configs: () => emulator.requests.filter(({ endpoint }) => endpoint === 'config').length,
    async shortLink(name) {
      await hub.addAppliance(name, 'Monitoring RemoteControl');
      return hub.ask(async (control) => {
        const reports = control.followPairing(await control.pair(name), new AbortController().signal);
        for await (const report of reports) if (report.event === 'waiting') return report.short_url ?? '';
        throw new Error('no link');
      });
    },
    async begin(name) {
      const credentials: CredentialsResponse = await hub.addAppliance(name, 'Monitoring RemoteControl');
      const headers = { 'content-type': FORM, authorization: basicAuthorization(credentials) };
      const response = parseJsonBody(
        await client.https('/oauth/device_authorization', { method: 'POST', headers, body: '' }),
      );
      rememberSecrets([String(response['device_code'])]);
      return { link: String(response['verification_uri_complete']), userCode: String(response['user_code']) };
    },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

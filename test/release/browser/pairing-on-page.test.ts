import type { BrowserContextOptions } from 'playwright-core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type BrowserTestHub,
  logIn,
  openSignedIn,
  openTrustingVisit,
  resetBrowserTestHub,
  savePicture,
  startBrowserTestHub,
} from '../../browser/browser-test-hub.ts';
import { type Browser, browserSkipReason, DESKTOP, PHONE, startBrowser, type Visit } from '../../support/browser.ts';
import { eventually } from '../../support/hub-process.ts';
import { qrScannerSkipReason, scanQrCode } from '../../support/qr-scanner.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectUsable } from '../../support/usability.ts';

const APPLIANCES = ['battery', 'heat-pump', 'wallbox'] as const;

let browser: Browser;
let testHub: InstallerTestHub;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    testHub = parts.use(await start());
  },
  { skipReason: browserSkipReason },
);
beforeEach(() => addAppliances(testHub));
afterEach(() => resetBrowserTestHub(testHub));

describe('an installer with a phone on the home network', () => {
  it('an installer connects three appliances with one password, with one tap for each further appliance', async () => {
    await using visit = await testHub.signedIn(PHONE);
    const { page } = visit;
    await page.getByRole('button', { name: 'Connect all' }).click();
    await page.getByRole('heading', { name: 'Connect all appliances' }).waitFor();
    await page.getByText('0 of 3 connected').waitFor();
    await page.getByRole('link', { name: 'Log in at the portal' }).waitFor();
    await expectUsable(visit, 'batch-waiting');
    await savePicture(visit, 'connecting');
    await page.getByRole('link', { name: 'Log in at the portal' }).click();
    await logIn(visit.page);
    await page.getByText('battery is connected').waitFor();
    await expectUsable(visit, 'batch-first-connected');
    for (const [index, next] of APPLIANCES.slice(1).entries()) {
      await page.getByRole('button', { name: `Next: ${next}` }).click();
      await page.getByRole('button', { name: 'Continue as demo' }).click();
      await page.getByText(index === 0 ? 'heat-pump is connected' : 'All 3 are connected').waitFor();
    }
    await expectUsable(visit, 'batch-done');
    await page.getByRole('link', { name: 'To the hub’s page' }).click();
    await page.getByRole('status').getByText('All 3 are connected').waitFor();
    await savePicture(visit, 'overview');
    expect(new URL(page.url()).protocol).toBe('https:');
    for (const name of APPLIANCES) expect((await testHub.hub.appliance(name)).state).toBe('active');
    expect(visit.browserErrors).toEqual([]);
  });

  it('an installer tries a refused appliance of a batch again, and skips another one', async () => {
    await using visit = await testHub.signedIn(PHONE);
    const { page } = visit;
    await page.getByRole('button', { name: 'Connect all' }).click();
    await page.getByRole('link', { name: 'Log in at the portal' }).click();
    await page.getByRole('button', { name: 'Refuse' }).click();
    await page.getByText('did not allow the access').waitFor();
    // Any browser can send a refusal, so the result page shows nothing else; the hub's page continues the batch.
    expect(await page.getByText('heat-pump').count()).toBe(0);
    await expectUsable(visit, 'batch-refused');
    await page.getByRole('link', { name: 'To the hub’s page' }).click();
    await page.getByRole('button', { name: 'Next: heat-pump' }).waitFor();
    await page.getByRole('button', { name: 'Try battery again' }).click();
    await page.getByRole('link', { name: 'Log in at the portal' }).click();
    await logIn(visit.page);
    await page.getByText('battery is connected').waitFor();
    await page.getByRole('link', { name: 'To the hub’s page' }).click();
    await page.getByRole('button', { name: 'Skip heat-pump' }).click();
    await page.getByRole('heading', { name: 'wallbox' }).waitFor();
    await page.getByText('The login was cancelled at the hub.').waitFor();
    await page.getByRole('link', { name: 'Log in at the portal' }).click();
    await page.getByRole('button', { name: 'Continue as demo' }).click();
    await page.getByText('2 of 3 are connected').waitFor();
    await expectUsable(visit, 'batch-not-all');
    expect(visit.browserErrors).toEqual([]);
  });
});

describe('an installer whose login is on another phone', () => {
  it('an installer sees a refusal, gets a fresh link, and sees the same pairing on two phones', async () => {
    await using visit = await testHub.signedIn(PHONE);
    await using second = await testHub.signedIn(PHONE);
    const { page } = visit;
    const one = await testHub.begin(visit);
    const two = await testHub.begin(second);
    expect(two.url).toBe(one.url);
    expect(two.link).toBe(one.link);
    await expectUsable(visit, 'pairing-waiting');
    await testHub.emulator.login({ state: new URL(one.link).searchParams.get('state') ?? '', deny: true });
    // No browser has brought the refusal, and polling does not report one, so the page keeps waiting.
    await page.getByRole('button', { name: 'Get a new link' }).click();
    await page.getByText('Waiting for the login').waitFor();
    expect(page.url()).not.toBe(one.url);
    await second.page.getByText('A newer login link has replaced this one.').waitFor();
    await expectUsable(second, 'pairing-replaced');
    await second.page.getByRole('link', { name: 'Show the newest login' }).click();
    await second.page.getByText('Waiting for the login').waitFor();
    expect(second.page.url()).toBe(page.url());
    await second.page.getByRole('link', { name: 'Log in at the portal' }).click();
    await second.page.getByRole('button', { name: 'Refuse' }).click();
    await second.page.getByText('wallbox is not connected').waitFor();
    await page.getByText('Somebody did not allow the access, or the portal refused it.').waitFor();
    await expectUsable(visit, 'pairing-refused');
    await page.goBack();
    await page.getByText('wallbox').first().waitFor();
    expect(visit.browserErrors).toEqual([]);
  });
});

describe('the page of a pairing while the hub polls for the code', () => {
  let polling: InstallerTestHub;
  setUpOnce(
    async (parts) => {
      polling = parts.use(await start('redirect = "off"'));
    },
    { skipReason: browserSkipReason },
  );
  beforeEach(() => addAppliances(polling));
  afterEach(() => resetBrowserTestHub(polling));

  it('the page of a batch shows each login live, and the next link automatically', async () => {
    await using visit = await polling.signedIn(DESKTOP);
    await using other = await browser.visit(PHONE);
    const { page } = visit;
    await page.getByRole('button', { name: 'Connect all' }).click();
    for (const name of APPLIANCES) {
      await page.getByRole('heading', { name, exact: true }).waitFor();
      const link = page.getByRole('link', { name: 'Log in at the portal' });
      const url = await link.getAttribute('href');
      if (name === 'battery') await expectUsable(visit, 'batch-desktop');
      await other.page.goto(url ?? '');
      if (name === 'battery') await logIn(other.page);
      else await other.page.getByRole('button', { name: 'Continue as demo' }).click();
      await other.page.getByText('You can close this page').waitFor();
    }
    await page.getByRole('status').getByText('All 3 are connected').waitFor();
    await expectUsable(visit, 'batch-desktop-done');
    expect(visit.browserErrors).toEqual([]);
  });

  it('the page of a pairing reloads and works in a browser without scripts', async () => {
    await using visit = await polling.signedIn({ ...PHONE, javaScriptEnabled: false });
    const { page } = visit;
    const { link } = await polling.begin(visit);
    await polling.emulator.login({ state: new URL(link).searchParams.get('state') ?? '', user: 'demo' });
    await eventually(async () => (await polling.hub.appliance('wallbox')).state === 'active');
    await page.getByText('wallbox is connected').first().waitFor();
    await expectUsable(visit, 'pairing-connected-no-scripts');
    expect(visit.browserErrors).toEqual([]);
  });
});

it('the link of a printed label asks for the setup code first, and then starts a pairing of its appliance', async () => {
  await using visit = await openTrustingVisit(browser, PHONE);
  const { page } = visit;
  await page.goto(`${testHub.origin}/p/wallbox`);
  await page.getByLabel('Setup code').fill((await testHub.hub.setupCode()).code);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Waiting for the login').waitFor();
  const url = page.url();
  await page.goto(`${testHub.origin}/p/wallbox`);
  await page.getByText('Waiting for the login').waitFor();
  expect(page.url()).toBe(url);

  // If another site leads there, the page starts nothing automatically.
  await page.goto('about:blank');
  await page.setContent(`<a href="${testHub.origin}/p/heat-pump">here</a>`);
  await page.getByRole('link', { name: 'here' }).click();
  await page.getByRole('heading', { name: 'Connect heat-pump again?' }).waitFor();
  await expectUsable(visit, 'label-asked-back');
  expect((await testHub.hub.appliance('heat-pump')).state).toBe('unpaired');
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.getByText('Waiting for the login').waitFor();
});

it('the page prints only the label of an appliance', async (ctx) => {
  const unread = qrScannerSkipReason();
  if (unread !== null) ctx.skip(unread);
  await using visit = await testHub.signedIn(PHONE);
  const { page } = visit;
  await page.goto(`${testHub.origin}/appliances/wallbox`);
  await page.getByRole('link', { name: 'Label for the cabinet door' }).click();
  await page.getByRole('button', { name: 'Print' }).waitFor();
  await expectUsable(visit, 'label');
  const label = page.locator('.door-label svg');
  const link = scanQrCode(await label.screenshot());
  expect(link).toMatch(/^https:\/\/[\w-]+\.local:\d+\/p\/wallbox$/);

  const paper = (await page.pdf({ preferCSSPageSize: true })).toString('latin1');
  const sizes = [...paper.matchAll(/\/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]/g)].map(([, ...size]) => size.map(Number));
  const points = (mm: number) => expect.closeTo((mm / 25.4) * 72, 0);
  expect(sizes).toEqual([[points(60), points(40)]]);
  await page.emulateMedia({ media: 'print' });
  for (const other of ['.top', 'h1', '.hint', '.actions', '.bottom']) {
    expect(await page.locator(other).isVisible(), other).toBe(false);
  }
  expect(scanQrCode(await page.screenshot())).toBe(link);
  expect(visit.browserErrors).toEqual([]);
});

interface InstallerTestHub extends BrowserTestHub {
  /** A browser that is signed in and shows the first page. */
  signedIn(options: BrowserContextOptions): Promise<Visit>;
  /** Begins the pairing of the wallbox on its page. */
  begin(visit: Visit): Promise<{ url: string; link: string }>;
}

async function addAppliances({ hub }: BrowserTestHub): Promise<void> {
  for (const name of APPLIANCES) await hub.addAppliance(name, 'Monitoring RemoteControl');
}

/** A hub and its portal. @param portal keys of its configuration */
async function start(portal = ''): Promise<InstallerTestHub> {
  const started = await startBrowserTestHub({}, { portal });
  const { origin } = started;
  return {
    ...started,
    signedIn: (options) => openSignedIn(browser, started, options),
    async begin({ page }) {
      await page.goto(`${origin}/appliances/wallbox`);
      await page.locator('form[action$="/pair"] button').first().click();
      const link = await page.getByRole('link', { name: 'Log in at the portal' }).getAttribute('href');
      return { url: page.url(), link: link ?? '' };
    },
  };
}

import type { BrowserContextOptions, Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { EmulatorOptions } from '../../../src/emulator/index.ts';
import { textsFor } from '../../../src/page/page-context.ts';
import type { Texts } from '../../../src/page/texts/en.ts';
import { type BrowserTestHub, logIn, openSignedIn, startBrowserTestHub } from '../../browser/browser-test-hub.ts';
import {
  type Browser,
  browserSkipReason,
  PHONE,
  SMALL_PHONE,
  startBrowser,
  type Visit,
} from '../../support/browser.ts';
import { eventually } from '../../support/hub-process.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectUsable } from '../../support/usability.ts';

let browser: Browser;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
  },
  { skipReason: browserSkipReason },
);

const VARIANTS: readonly [string, BrowserContextOptions][] = [
  ['phone', PHONE],
  ['small-phone-german-dark', { ...SMALL_PHONE, locale: 'de-DE', colorScheme: 'dark' }],
  ['phone-dark-without-scripts', { ...PHONE, colorScheme: 'dark', javaScriptEnabled: false }],
];

/** The redirect address of a tool on a machine that has none of its own: no browser can open it. */
const DEAD_REDIRECT = 'http://localhost:8765/back';

function startHub(emulator: EmulatorOptions, portal = ''): Promise<BrowserTestHub> {
  return startBrowserTestHub({ redirectRule: 'any', deviceInterval: 1, ...emulator }, { portalType: 'oauth2', portal });
}

/** A browser on a hub that knows nothing yet: it signs in, adds a connection, and begins to connect it. */
async function beginFromNothing(hub: BrowserTestHub, options: BrowserContextOptions): Promise<[Visit, Texts]> {
  const texts = textsFor(options.locale);
  const visit = await openSignedIn(browser, hub, options);
  const { page } = visit;
  await page.getByRole('link', { name: texts.addConnection.title }).click();
  await page.getByLabel(texts.adding.name, { exact: true }).fill('heating');
  await page.getByRole('button', { name: texts.adding.add, exact: true }).click();
  await page.getByRole('button', { name: texts.overview.connect, exact: true }).click();
  await page.getByText(texts.pairing.waiting).first().waitFor();
  return [visit, texts];
}

async function expectConnected({ hub }: BrowserTestHub): Promise<void> {
  await eventually(async () => (await hub.connection('heating')).state === 'active');
}

/** The tab that a tap opens. */
async function openedBy(page: Page, tap: () => Promise<void>): Promise<Page> {
  const [tab] = await Promise.all([page.context().waitForEvent('page'), tap()]);
  return tab;
}

describe('from nothing to a connected login', () => {
  it.each(VARIANTS)('a person types the code of the hub at the portal (%s)', async (variant, options) => {
    await using hub = await startHub({ flows: 'device', verificationUriComplete: false });
    const [visit, texts] = await beginFromNothing(hub, options);
    await using _ = visit;
    const { page } = visit;
    await page.getByText(texts.pairing.enterCode).waitFor();
    const code = (await page.locator('#user-code').textContent()) ?? '';
    await expectUsable(visit, `${variant}-type-code`);
    const portal = await openedBy(page, () => page.getByRole('link', { name: texts.pairing.logIn }).click());
    await portal.getByLabel('The code that your device shows').fill(code);
    await portal.getByRole('button', { name: 'Continue' }).click();
    await logIn(portal);
    await portal.getByText('now gets access').waitFor();
    await page.getByText(texts.pairing.connectedText).waitFor();
    await expectUsable(visit, `${variant}-code-typed`);
    await expectConnected(hub);
    expect(visit.browserErrors).toEqual([]);
  });

  it.each(VARIANTS)('the portal redirects the person back to the hub (%s)', async (variant, options) => {
    await using hub = await startHub({ flows: 'code' });
    const [visit, texts] = await beginFromNothing(hub, options);
    await using _ = visit;
    const { page } = visit;
    await page.getByRole('link', { name: texts.pairing.paste.question }).waitFor();
    await expectUsable(visit, `${variant}-redirect`);
    await page.getByRole('link', { name: texts.pairing.logIn }).click();
    await logIn(page);
    await page.getByText(texts.result.connectedText).waitFor();
    expect(new URL(page.url()).pathname).toBe('/callback');
    await expectUsable(visit, `${variant}-redirected`);
    await page.reload();
    await page.getByText(texts.result.connectedText).waitFor();
    await page.getByRole('link', { name: texts.batch.openHubPage }).click();
    await page.getByText(texts.pairing.connectedText).waitFor();
    await expectConnected(hub);
    expect(visit.browserErrors).toEqual([]);
  });

  it.each(VARIANTS)('a person pastes the address of the error page (%s)', async (variant, options) => {
    await using hub = await startHub({ flows: 'code' }, `redirect_uri = "${DEAD_REDIRECT}"\nlogin = "paste"`);
    const [visit, texts] = await beginFromNothing(hub, options);
    await using _ = visit;
    const { page } = visit;
    const { paste } = texts.pairing;
    await page.getByText(paste.expected).waitFor();
    await expectUsable(visit, `${variant}-paste-expected`);
    const portal = await openedBy(page, () => page.getByRole('link', { name: texts.pairing.logIn }).click());
    const failed = portal.waitForEvent('requestfailed');
    await logIn(portal);
    const address = (await failed).url();
    expect(address).toContain(`${DEAD_REDIRECT}?code=`);
    // The browser could not open that address, and says so.
    visit.clearBrowserErrors();

    await page.getByRole('link', { name: paste.open }).click();
    await page.getByRole('heading', { name: paste.title }).waitFor();
    await expectUsable(visit, `${variant}-paste`);
    await page.getByLabel(paste.address).fill('heating.example');
    await page.getByRole('button', { name: paste.connect }).click();
    await page.getByText(paste.problems.malformed).waitFor();
    expect(await page.getByLabel(paste.address).inputValue()).toBe('heating.example');
    await expectUsable(visit, `${variant}-paste-wrong`);
    await page.getByLabel(paste.address).fill(address);
    await page.getByRole('button', { name: paste.connect }).click();
    await page.getByText(texts.pairing.connectedText).waitFor();
    expect(page.url()).not.toContain('code=');
    await expectUsable(visit, `${variant}-pasted`);
    await expectConnected(hub);
    expect(visit.browserErrors).toEqual([]);
  });
});

it('an open page of a pairing shows a new code of the portal without being reloaded', async () => {
  await using hub = await startHub({ flows: 'device', verificationUriComplete: false });
  const [visit] = await beginFromNothing(hub, PHONE);
  await using _ = visit;
  const code = visit.page.locator('#user-code');
  const before = await code.textContent();
  hub.emulator.advance(hub.emulator.settings.deviceCodeLifetime + 1);
  await visit.page.evaluate(() => document.body.setAttribute('data-same-document', ''));
  await eventually(async () => (await code.textContent()) !== before);
  expect(await visit.page.locator('body[data-same-document]').count()).toBe(1);
  expect(visit.browserErrors).toEqual([]);
});

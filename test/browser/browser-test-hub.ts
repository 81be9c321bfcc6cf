import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { afterEach } from 'vitest';
import type { Emulator, EmulatorOptions } from '../../src/emulator/index.ts';
import { root } from '../project/checkout.ts';
import { type Browser, browserSkipReason, startBrowser, type Visit } from '../support/browser.ts';
import { HubProcess, type HubProcessOptions } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { expectUsable } from '../support/usability.ts';

/** The OAuth client; the portal's pages show its name. */
const CLIENT = { id: '7d0f4c9e-2f6b-4f0e-9a53-0c5b8a5c2f77', secret: 'a-secret-for-the-browser', name: 'Latchkey' };
rememberSecrets([CLIENT.secret]);

/** A hub and its portal, for tests with a browser. */
export interface BrowserTestHub extends AsyncDisposable {
  readonly emulator: Emulator;
  readonly hub: HubProcess;
  /** The hub's HTTPS origin. */
  readonly origin: string;
}

export async function startBrowserTestHub(
  portal: EmulatorOptions = {},
  options: Omit<HubProcessOptions, 'emulator'> = {},
): Promise<BrowserTestHub> {
  await using starting = new AsyncDisposableStack();
  const emulator = starting.use(await startPortal({ clients: [CLIENT], ...portal }));
  const hub = starting.use(await HubProcess.start({ emulator, here: true, ...options }));
  const parts = starting.move();
  const origin = `https://127.0.0.1:${hub.httpsPort}`;
  return { emulator, hub, origin, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** Sets up a browser and a hub for the tests of this file. After each test, the hub has no connection. */
export function setUpBrowserTests(): Omit<BrowserTestHub, typeof Symbol.asyncDispose> & { readonly browser: Browser } {
  let browser: Browser;
  let testHub: BrowserTestHub;
  setUpOnce(
    async (parts) => {
      browser = parts.use(await startBrowser());
      testHub = parts.use(await startBrowserTestHub());
    },
    { skipReason: browserSkipReason },
  );
  afterEach(async () => {
    const { hub, emulator } = testHub;
    for (const { name } of (await hub.status()).appliances)
      await hub.ask((control) => control.request('removeAppliance', { name }));
    for (const { name } of (await hub.status()).connections)
      await hub.ask((control) => control.request('removeConnection', { name, even_if_used: true }));
    await emulator.reset();
  });
  return {
    get browser() {
      return browser;
    },
    get emulator() {
      return testHub.emulator;
    },
    get hub() {
      return testHub.hub;
    },
    get origin() {
      return testHub.origin;
    },
  };
}

/** A browser in which a person has accepted the warning about the hub's certificate. */
export function openTrustingVisit(browser: Browser, options: BrowserContextOptions): Promise<Visit> {
  return browser.visit({ ...options, ignoreHTTPSErrors: true });
}

/** Waits for a text and checks that the page is usable. @param allowed as for {@link expectUsable} */
export async function expectPage(visit: Visit, name: string, text: string, allowed?: readonly string[]): Promise<void> {
  await visit.page.getByText(text).first().waitFor();
  await expectUsable(visit, name, allowed);
}

/** Whether the run renews the screenshots of the documentation. */
const RENEWS_PICTURES = process.env['LATCHKEY_DOCS_IMAGES'] !== undefined;

/** Writes a screenshot of the documentation, if the run is to renew them. */
export async function savePicture({ page }: Visit, name: string): Promise<void> {
  if (!RENEWS_PICTURES) return;
  await writeFile(join(root, 'docs/images', `${name}.png`), await page.screenshot({ scale: 'css' }));
}

/** Opens the page of a hub in a browser, signs in with the setup code, and waits for the overview. */
export async function openSignedIn(
  browser: Browser,
  { hub, origin }: Pick<BrowserTestHub, 'hub' | 'origin'>,
  options: BrowserContextOptions,
): Promise<Visit> {
  const visit = await openTrustingVisit(browser, options);
  await visit.page.goto(`${origin}/`);
  await enterSetupCode(visit.page, hub);
  await visit.page.locator('#health').waitFor();
  rememberSecrets((await visit.page.context().cookies(origin)).map(({ value }) => value));
  return visit;
}

/** Fills in the sign-in page. */
export async function enterSetupCode(page: Page, hub: HubProcess): Promise<void> {
  await page.locator('#code').fill((await hub.setupCode()).code);
  await page.keyboard.press('Enter');
}

/** Fills in the portal's login page. */
export async function logIn(page: Page, password = 'demo'): Promise<void> {
  await page.getByLabel('User name').fill('demo');
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

import type { Locator } from 'playwright-core';
import { expect, it } from 'vitest';
import type { Emulator } from '../../src/emulator/index.ts';
import { textsFor } from '../../src/page/page-context.ts';
import { type Browser, browserSkipReason, PHONE, startBrowser } from '../support/browser.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { expectUsable } from '../support/usability.ts';
import { logIn, openTrustingVisit } from './browser-test-hub.ts';

let browser: Browser;
let emulator: Emulator;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    emulator = parts.use(await startPortal());
    rememberSecrets([emulator.clientSecret]);
  },
  { skipReason: browserSkipReason },
);

it.each([
  ['on a phone', PHONE],
  ['on a phone in German without scripts', { ...PHONE, locale: 'de-DE', javaScriptEnabled: false }],
])(
  'an installer connects three appliances of a fresh hub, its cloud included, in at most 14 taps on buttons and links (%s)',
  async (way, options) => {
    const texts = textsFor(options.locale);
    await using hub = await HubProcess.start({ here: true });
    await using visit = await openTrustingVisit(browser, options);
    const { page } = visit;
    // As the QR code does that the installation of the package shows.
    await page.goto((await hub.setupCode()).sign_in);
    let taps = 0;
    const tap = async (target: string | Locator) => {
      taps += 1;
      await (typeof target === 'string' ? page.locator(target).first() : target).tap();
    };
    await page.getByText(texts.portal.choose).waitFor();
    await expectUsable(visit, `${way}-choose-cloud`);
    await tap('#cloud-helper');
    for (const [key, value] of [
      ['base_url', emulator.baseUrl],
      ['frontend_url', emulator.frontendUrl],
      ['client_id', emulator.clientId],
      ['client_secret', emulator.clientSecret],
    ] as const)
      await page.locator(`#${key}`).fill(value);
    await expectUsable(visit, `${way}-cloud-form`);
    await tap('#submit');
    await page.getByText(texts.portal.accepted).waitFor();
    await expectUsable(visit, `${way}-cloud-added`);
    for (const name of ['wallbox', 'heatpump', 'inverter']) {
      if (name !== 'wallbox') await tap('#another');
      await page.getByLabel(texts.adding.name, { exact: true }).fill(name);
      await tap('#submit');
      await page.getByText(texts.adding.credentials.added(name)).waitFor();
      rememberSecrets([(await page.locator('#client-secret').textContent()) ?? '']);
    }
    await expectUsable(visit, `${way}-third-appliance`);
    await tap('#connect');
    await tap(page.getByRole('link', { name: texts.pairing.logInAt(new URL(emulator.frontendUrl).host) }));
    taps += 1;
    await logIn(page);
    for (const name of ['inverter', 'wallbox']) {
      await tap(page.getByRole('button', { name: texts.batch.next(name) }));
      await tap(page.getByRole('button', { name: 'Continue as demo' }));
    }
    await page.getByText(texts.result.connectedText).waitFor();
    rememberSecrets((await page.context().cookies()).map(({ value }) => value));
    expect((await hub.status()).appliances.map(({ state }) => state)).toEqual(['active', 'active', 'active']);
    expect(taps).toBeLessThanOrEqual(14);
    expect(visit.browserErrors).toEqual([]);
  },
);

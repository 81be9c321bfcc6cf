// The most important paths in one browser. Every page, look and language: test/release/browser.
import type { BrowserContextOptions } from 'playwright-core';
import { expect, it } from 'vitest';
import { textsFor } from '../../src/page/page-context.ts';
import { HubClient } from '../lan/hub-client.ts';
import { PHONE } from '../support/browser.ts';
import { rememberSecrets } from '../support/logs.ts';
import { expectUsable } from '../support/usability.ts';
import { expectPage, logIn, openTrustingVisit, savePicture, setUpBrowserTests } from './browser-test-hub.ts';

const testHub = setUpBrowserTests();

const WAYS: readonly [string, BrowserContextOptions][] = [
  ['on a phone', PHONE],
  [
    'on a phone in German, at night and without scripts',
    { ...PHONE, locale: 'de-DE', colorScheme: 'dark', javaScriptEnabled: false },
  ],
];

it.each(WAYS)(
  'an installer signs in, adds an appliance, connects it and sees it connected (%s)',
  async (way, options) => {
    const texts = textsFor(options.locale);
    const { hub, origin } = testHub;
    await using visit = await openTrustingVisit(testHub.browser, options);
    const { page } = visit;
    await page.goto(`${origin}/`);
    await expectUsable(visit, `${way}-sign-in`);
    const field = page.getByLabel(texts.signIn.label);
    await field.fill((await hub.setupCode()).code.toLowerCase().replaceAll('-', ' '));
    expect(await field.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    await page.getByRole('button', { name: texts.signIn.button }).click();
    await page.getByText(texts.overview.noAppliances).waitFor();
    rememberSecrets((await page.context().cookies(origin)).map(({ value }) => value));

    await page.getByRole('link', { name: texts.adding.title }).click();
    await page.getByLabel(texts.adding.name, { exact: true }).fill('wallbox');
    await page.getByLabel(texts.adding.scope, { exact: true }).fill('Monitoring');
    await page.getByRole('button', { name: texts.adding.add }).click();
    await page.getByText(texts.adding.credentials.added('wallbox')).waitFor();
    rememberSecrets([(await page.locator('#client-secret').textContent()) ?? '']);
    await expectUsable(visit, `${way}-secret`);
    await page.getByRole('button', { name: texts.adding.credentials.done }).click();

    await page.locator('form[action$="/pair"] button').first().click();
    await page.getByRole('link', { name: texts.pairing.logIn }).waitFor();
    await expectUsable(visit, `${way}-pairing`);
    await page.getByRole('link', { name: texts.pairing.logIn }).click();
    await logIn(page);
    await page.getByText(texts.result.connected('wallbox', 1)).waitFor();
    expect(new URL(page.url()).protocol).toBe('http:');
    await page.goto(`${origin}/`);
    await page.getByText(texts.overview.headlines.neverServed('wallbox', 1)).waitFor();
    await expectUsable(visit, `${way}-overview`);
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', scope: 'Monitoring', problem: null });
    if (visit.scripts) {
      // The open page follows the hub.
      await hub.addAppliance('meter');
      await page.locator('#appliance-meter').waitFor();
    }
    expect(visit.browserErrors).toEqual([]);
  },
);

it('a person opens the link that an appliance shows, logs in at the portal, and sees that it is connected', async () => {
  const { hub, emulator } = testHub;
  await using client = await HubClient.of(hub);
  const { link, userCode } = await client.beginDeviceFlow(await hub.addAppliance('heater', 'Monitoring RemoteControl'));
  await using visit = await openTrustingVisit(testHub.browser, PHONE);
  const { page } = visit;
  await page.goto(link);
  await expectPage(visit, 'device-confirm', 'Connect heater?');
  await page.getByText(userCode).waitFor();
  await savePicture(visit, 'pair');
  await page.getByRole('button', { name: 'Continue' }).tap();
  await logIn(page);
  await expectPage(visit, 'device-connected', 'heater is connected');
  expect(await hub.appliance('heater')).toMatchObject({ state: 'active', problem: null });
  expect(emulator.grants()).toHaveLength(1);
  expect(visit.browserErrors).toEqual([]);
});

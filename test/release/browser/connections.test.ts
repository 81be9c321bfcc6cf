import type { BrowserContextOptions } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import { textsFor } from '../../../src/page/page-context.ts';
import {
  enterSetupCode,
  logIn,
  openSignedIn,
  openTrustingVisit,
  savePicture,
  setUpBrowserTests,
} from '../../browser/browser-test-hub.ts';
import { HubClient } from '../../lan/hub-client.ts';
import { DESKTOP, PHONE, type Visit } from '../../support/browser.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { expectUsable } from '../../support/usability.ts';

const testHub = setUpBrowserTests();

const signedIn = (options: BrowserContextOptions) => openSignedIn(testHub.browser, testHub, options);

async function capture(visit: Visit, name: string, image?: string): Promise<void> {
  await expectUsable(visit, name);
  if (image !== undefined) await savePicture(visit, image);
}

const VARIANTS: readonly [string, BrowserContextOptions][] = [
  ['phone', PHONE],
  ['phone-german-dark-without-scripts', { ...PHONE, locale: 'de-DE', colorScheme: 'dark', javaScriptEnabled: false }],
  ['desktop', DESKTOP],
];
/** For the tests whose pages are like those of the first one: both languages, with and without scripts. */
const OTHER_TESTS = VARIANTS.slice(0, 2);

describe('a login that several appliances share', () => {
  it.each(VARIANTS)(
    'an installer adds a login with two appliances, connects it once, and removes one of them (%s)',
    async (variant, options) => {
      const texts = textsFor(options.locale);
      const names = { login: texts.connection.title('netatmo'), both: /dashboard (and|und) thermostat/ };
      const isPictured = variant === 'phone';
      await using visit = await signedIn(options);
      const { page } = visit;
      const shows = (text: string | RegExp) => page.getByText(text).first().waitFor();

      await page.getByRole('link', { name: texts.addConnection.title }).click();
      await shows(texts.addConnection.text);
      await capture(visit, `${variant}-add-login`);
      await page.getByLabel(texts.adding.name, { exact: true }).fill('netatmo');
      await page.getByLabel(texts.adding.scope, { exact: true }).fill('Monitoring');
      await page.getByRole('button', { name: texts.adding.add, exact: true }).click();
      await page.getByRole('heading', { name: names.login }).waitFor();
      await shows(texts.connection.unused);
      await capture(visit, `${variant}-unused`);

      for (const name of ['thermostat', 'dashboard']) {
        await page.getByRole('link', { name: texts.connection.addAppliance }).click();
        await page.getByLabel(texts.adding.name, { exact: true }).fill(name);
        expect(await page.getByLabel(texts.connectionChoice.label, { exact: true }).inputValue()).toBe('netatmo');
        // Only a login of its own has permissions and a portal of its own.
        expect(await page.getByLabel(texts.adding.scope, { exact: true }).isVisible()).toBe(false);
        if (name === 'thermostat') await capture(visit, `${variant}-choose-login`);
        await page.getByRole('button', { name: texts.adding.add, exact: true }).click();
        await page.getByRole('heading', { name: texts.adding.credentials.added(name) }).waitFor();
        rememberSecrets([(await page.locator('#client-secret').textContent()) ?? '']);
        await page.getByRole('button', { name: texts.adding.credentials.done }).click();
        await page.getByRole('heading', { name, exact: true }).waitFor();
        await capture(visit, `${variant}-appliance-${name}`);
        await page.getByRole('link', { name: 'netatmo', exact: true }).click();
        await page.getByRole('heading', { name: names.login }).waitFor();
      }
      await page.getByRole('link', { name: texts.installer.overview }).click();
      await shows(texts.overview.headlines.notConnected(texts.connection.quoted('netatmo'), 1));
      await capture(visit, `${variant}-overview-not-connected`);

      await page.getByRole('button', { name: texts.overview.connect, exact: true }).click();
      await page.getByRole('heading', { name: texts.pairing.loginTitle('netatmo') }).waitFor();
      await shows(names.both);
      await page.getByRole('link', { name: texts.pairing.logIn }).waitFor();
      await capture(visit, `${variant}-pairing`);
      await page.getByRole('link', { name: texts.pairing.logIn }).click();
      await logIn(page);
      await page.getByRole('heading', { name: names.both }).waitFor();
      await shows(texts.connection.about('netatmo'));
      await capture(visit, `${variant}-connected`);
      for (const name of ['thermostat', 'dashboard']) {
        expect(await testHub.hub.appliance(name)).toMatchObject({ state: 'active', connection: 'netatmo' });
      }
      expect(testHub.emulator.grants().filter(({ revoked }) => !revoked)).toHaveLength(1);

      await page.getByRole('link', { name: texts.batch.openHubPage }).click();
      await shows(names.both);
      await page.goto(`${testHub.origin}/`);
      await shows(texts.overview.headlines.neverServed(texts.overview.severalAppliances(2), 2));
      await capture(visit, `${variant}-overview`, isPictured ? 'shared-login' : undefined);
      await page.getByRole('link', { name: names.login }).click();
      await shows(texts.history.kinds.paired);
      await capture(visit, `${variant}-login`);
      await page.getByRole('link', { name: texts.appliance.remove }).click();
      await shows(texts.connection.removeUsed('dashboard'.concat(options.locale ? ' und ' : ' and ', 'thermostat')));
      await capture(visit, `${variant}-remove-login`);
      await page.getByRole('link', { name: texts.installer.cancel }).click();

      await page.getByRole('link', { name: 'thermostat', exact: true }).click();
      await page.getByRole('heading', { name: 'thermostat', exact: true }).waitFor();
      await capture(visit, `${variant}-appliance-connected`);
      await page.getByRole('link', { name: texts.appliance.remove }).click();
      await shows(texts.connectionChoice.removeText('netatmo'));
      await capture(visit, `${variant}-remove-appliance`);
      await page.getByRole('button', { name: texts.appliance.remove }).click();
      await shows(texts.overview.headlines.neverServed('dashboard', 1));
      expect(await testHub.hub.connection('netatmo')).toMatchObject({ state: 'active', appliances: ['dashboard'] });
      await capture(visit, `${variant}-one-left`);
      expect(visit.browserErrors).toEqual([]);
    },
  );
});

describe('the code of an appliance whose login is connected already', () => {
  async function begin(credentials: CredentialsResponse): Promise<string> {
    await using client = await HubClient.of(testHub.hub);
    return (await client.beginDeviceFlow(credentials)).link;
  }

  it.each(OTHER_TESTS)(
    'a person with the setup code lets an appliance use the login, without the portal (%s)',
    async (variant, options) => {
      const texts = textsFor(options.locale);
      await testHub.hub.addConnection('netatmo', 'Monitoring');
      await testHub.hub.addAppliance('thermostat', null, null, 'netatmo');
      const credentials = await testHub.hub.addAppliance('dashboard', null, null, 'netatmo');
      await testHub.hub.pair('netatmo', testHub.emulator);
      const link = await begin(credentials);
      await using visit = await openTrustingVisit(testHub.browser, options);
      const { page } = visit;
      await page.goto(link);
      await page.getByRole('heading', { name: texts.code.mayUse('dashboard', 'netatmo') }).waitFor();
      await capture(visit, `${variant}-approval-needed`);
      await page.getByRole('button', { name: texts.code.signIn }).click();
      await page.getByLabel(texts.signIn.label).waitFor();
      await enterSetupCode(page, testHub.hub);
      await page.getByRole('heading', { name: texts.code.mayUse('dashboard', 'netatmo') }).waitFor();
      await page.getByText('thermostat').waitFor();
      await capture(visit, `${variant}-approval`, variant === 'phone' ? 'allow-login' : undefined);
      await page.getByRole('button', { name: texts.code.allow }).click();
      await page.getByRole('heading', { name: texts.result.connected('dashboard', 1) }).waitFor();
      await capture(visit, `${variant}-approved`);
      expect(testHub.hub.events('device_flow_approved').at(-1)).toMatchObject({ appliance: 'dashboard' });
      // A signed-in browser gets to the question at once, and can refuse.
      await page.goto(await begin(credentials));
      await page.getByRole('button', { name: texts.overview.reject }).click();
      await page.getByRole('heading', { name: texts.result.notConnected('dashboard', 1) }).waitFor();
      await capture(visit, `${variant}-refused`);
      expect(visit.browserErrors).toEqual([]);
    },
  );
});

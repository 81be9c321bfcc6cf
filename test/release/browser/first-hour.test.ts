import { createReadStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createGunzip } from 'node:zlib';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { extract } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { textsFor } from '../../../src/page/page-context.ts';
import type { Texts } from '../../../src/page/texts/en.ts';
import { logIn, savePicture, startBrowserTestHub } from '../../browser/browser-test-hub.ts';
import { type Browser, browserSkipReason, DESKTOP, PHONE, startBrowser, type Visit } from '../../support/browser.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import type { HubProcess } from '../../support/hub-process.ts';
import { logFile, rememberSecrets } from '../../support/logs.ts';
import { selectNamedRows } from '../../support/long.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectUsable } from '../../support/usability.ts';

/** The steps that the documentation shows. */
const PICTURED: Readonly<Record<string, string>> = { 'phone-waiting': 'connecting', 'phone-overview': 'overview' };
const SCOPES: Readonly<Record<string, string>> = {
  'heat-pump': 'Monitoring',
  inverter: '',
  wallbox: 'Monitoring RemoteControl',
};
const NAMES = Object.keys(SCOPES);

/** One variant of the first hour. */
interface Variant {
  readonly options: BrowserContextOptions;
  /** Whether the portal redirects the browser to the hub; otherwise the hub polls for the code. */
  readonly redirect: boolean;
  /** Whether the browser warns about the hub's certificate, as a phone does once. */
  readonly warned?: true;
}

const HOURS: readonly [string, Variant][] = [
  ['phone', { options: PHONE, redirect: true, warned: true }],
  ['phone-polled', { options: PHONE, redirect: false }],
  ['desktop', { options: DESKTOP, redirect: true }],
  ['desktop-polled', { options: DESKTOP, redirect: false }],
  ['phone-without-scripts', { options: { ...PHONE, javaScriptEnabled: false }, redirect: true }],
  ['phone-polled-without-scripts', { options: { ...PHONE, javaScriptEnabled: false }, redirect: false }],
  ['phone-german', { options: { ...PHONE, locale: 'de-DE' }, redirect: true }],
  ['desktop-german-polled', { options: { ...DESKTOP, locale: 'de-DE' }, redirect: false }],
];

/**
 * The variants in the normal suite: together they cover both devices, both languages, redirect and polling, scripts on
 * and off, and the browser's warning. All eight: `LATCHKEY_TEST_LONG=1 ./scripts/test test/browser/first-hour`.
 */
const SHORT = ['phone', 'phone-polled-without-scripts', 'desktop-german-polled'];

let browser: Browser;
let whole: Browser;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    whole = parts.use(await startBrowser({ whole: true }));
  },
  { skipReason: () => browserSkipReason(true) },
);

describe('the first hour of an installer', () => {
  it.concurrent.each(selectNamedRows(HOURS, SHORT))(
    'an installer gets from an empty hub to three connected appliances (%s)',
    async (way, hour) => {
      await using parts = new AsyncDisposableStack();
      const portal = hour.redirect ? '' : 'redirect = "off"';
      const { hub, origin } = parts.use(
        // The doctor also looks at the daemon's process.
        await startBrowserTestHub({}, { portal, env: { LATCHKEY_HUB_NAME: 'Cellar hub' }, here: hour.warned !== true }),
      );
      const used = hour.warned === true ? whole : browser;
      const installer = parts.use(await used.visit({ ...hour.options, ignoreHTTPSErrors: hour.warned !== true }));
      const user = parts.use(await browser.visit({ ...PHONE, locale: hour.options.locale ?? 'en-US' }));
      const { page } = installer;
      page.setDefaultTimeout(scaleDeadline(20_000));
      const texts = textsFor(hour.options.locale);
      const capture = (step: string) => look(installer, `${way}-${step}`);

      if (hour.warned === true) await passWarning(installer, `${origin}/`, way);
      else await page.goto(`${origin}/`);
      const { code } = await hub.setupCode();
      await capture('sign-in');
      await page.getByLabel(texts.signIn.label).fill(code.toLowerCase().replaceAll('-', ' '));
      await page.getByRole('button', { name: texts.signIn.button }).click();
      await page.getByText(texts.overview.noAppliances).waitFor();
      await capture('empty');
      rememberSecrets((await page.context().cookies(origin)).map(({ value }) => value));

      for (const name of NAMES) await add(page, texts, name, name === 'wallbox' ? capture : undefined);
      await page.getByText(texts.overview.severalNotConnected(3)).waitFor();
      await capture('not-connected');

      await page.getByRole('button', { name: texts.overview.connectAll, exact: true }).click();
      for (const [index, name] of NAMES.entries()) {
        await page.getByRole('heading', { name, exact: true }).waitFor();
        await page.getByText(texts.batch.progress(index, 3)).waitFor();
        const link = page.getByRole('link', { name: texts.pairing.logIn });
        const address = await link.getAttribute('href');
        if (index === 0) await capture('waiting');
        if (index === 0 || !hour.redirect) await user.page.goto(address ?? '');
        // The portal's page is only in English. From the second login on, the portal knows the browser.
        if (index === 0) await logIn(user.page);
        else await user.page.getByRole('button', { name: 'Continue as demo' }).click();
        if (!hour.redirect) await user.page.getByText('You can close this page').waitFor();
        else if (index < 2) {
          await user.page.getByText(texts.result.connected(name)).waitFor();
          await user.page.getByRole('button', { name: texts.batch.next(NAMES[index + 1] ?? '') }).click();
        } else await user.page.getByText(texts.batch.allConnected(3)).waitFor();
      }
      await user.takeScreenshot(`${way}-user-done`);
      await page.getByText(texts.batch.allConnected(3)).waitFor();
      await capture('connected');
      await page.getByRole('link', { name: texts.installer.overview }).click();
      await page.getByText(texts.overview.allConnected(3)).waitFor();
      await capture('overview');

      for (const { name, state, scope } of (await hub.status()).appliances) {
        expect({ name, state, scope }).toEqual({ name, state: 'active', scope: SCOPES[name] || null });
      }
      expect(installer.browserErrors).toEqual([]);
      expect(user.browserErrors).toEqual([]);
      expect(installer.origins).toEqual([origin]);
      if (hour.warned === true) await logDiagnostics(hub);
    },
  );
});

/** Accepts Chromium's certificate warning, which appears once per browser (docs/installer-page.md). */
async function passWarning(visit: Visit, address: string, way: string): Promise<void> {
  const { page } = visit;
  await expect(page.goto(address)).rejects.toThrow('ERR_CERT_AUTHORITY_INVALID');
  await page.getByText('Your connection is not private').waitFor();
  await visit.takeScreenshot(`${way}-warning`);
  await page.getByRole('button', { name: 'Advanced' }).click();
  await page.getByText('Proceed to 127.0.0.1 (unsafe)').click();
  await page.getByRole('textbox').waitFor();
  // The browser's message about the certificate is not an error of the page.
  visit.clearBrowserErrors();
}

async function add(page: Page, texts: Texts, name: string, capture?: (step: string) => Promise<void>): Promise<void> {
  await page.getByRole('link', { name: texts.overview.add }).click();
  await page.getByLabel(texts.adding.name, { exact: true }).fill(name);
  await page.getByLabel(texts.adding.scope, { exact: true }).fill(SCOPES[name] ?? '');
  await capture?.('add');
  await page.getByRole('button', { name: texts.adding.add }).click();
  await page.getByText(texts.adding.credentials.added(name)).waitFor();
  rememberSecrets([(await page.locator('#client-secret').textContent()) ?? '']);
  await capture?.('secret');
  await page.getByRole('button', { name: texts.adding.credentials.done }).click();
  await page.getByRole('heading', { name }).first().waitFor();
  await page.goto(new URL('/', page.url()).href);
}

/** Checks that the page is usable. */
async function look(visit: Visit, name: string): Promise<void> {
  if (PICTURED[name] !== undefined) await savePicture(visit, PICTURED[name]);
  await expectUsable(visit, `first-hour-${name}`);
}

/** Adds the content of a diagnostics archive to the logs, which are searched for secrets at the end. */
async function logDiagnostics(hub: HubProcess): Promise<void> {
  const file = join(hub.directory, 'diagnostics.tar.gz');
  const { status, stderr } = await hub.cli('doctor', '--bundle', file);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const kept: string[] = [];
  for await (const entry of createReadStream(file).pipe(createGunzip()).pipe(extract())) {
    const pieces: Buffer[] = [];
    for await (const piece of entry) pieces.push(piece as Buffer);
    await writeFile(logFile(`bundle-${entry.header.name}`), Buffer.concat(pieces));
    kept.push(entry.header.name);
  }
  expect(kept.length).toBeGreaterThan(5);
}

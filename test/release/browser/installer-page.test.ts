import type { BrowserContextOptions } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import {
  type BrowserTestHub,
  enterSetupCode,
  openSignedIn,
  openTrustingVisit,
  startBrowserTestHub,
} from '../../browser/browser-test-hub.ts';
import { HubClient } from '../../lan/hub-client.ts';
import { type Browser, browserSkipReason, DESKTOP, PHONE, startBrowser, type Visit } from '../../support/browser.ts';
import { eventually, type HubProcess } from '../../support/hub-process.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { selectNamedRows } from '../../support/long.ts';
import { setUpOnce } from '../../support/set-up.ts';
import { expectUsable } from '../../support/usability.ts';

const SCRIPT = '"><script>document.title = "taken over"</script>';

let browser: Browser;
let testHub: BrowserTestHub;
let emulator: Emulator;
let hub: HubProcess;
let origin: string;

setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    const toml = '[appliances.declared]\nscope = "Monitoring"\nsecret_file = "portal.secret"';
    testHub = parts.use(await startBrowserTestHub({}, { toml }));
    ({ emulator, hub, origin } = testHub);
  },
  { skipReason: browserSkipReason },
);

const signedIn = (options: BrowserContextOptions = PHONE) => openSignedIn(browser, testHub, options);

/** Adds an appliance on the page. @returns its secret */
async function add({ page }: Visit, name: string): Promise<string> {
  await page.goto(`${origin}/appliances/add`);
  await page.locator('#name').fill(name);
  await page.locator('#scope').fill('Monitoring');
  await page.locator('#submit').click();
  const secret = (await page.locator('#client-secret').textContent()) ?? '';
  rememberSecrets([secret]);
  return secret;
}

const LOOKS: readonly [string, BrowserContextOptions][] = [
  ['phone', PHONE],
  ['phone-dark-german', { ...PHONE, colorScheme: 'dark', locale: 'de-DE' }],
  ['desktop', DESKTOP],
  ['desktop-dark', { ...DESKTOP, colorScheme: 'dark' }],
  ['desktop-german', { ...DESKTOP, locale: 'de-DE' }],
  ['phone-without-scripts', { ...PHONE, javaScriptEnabled: false }],
];
/** Together they cover both widths, colours and languages, and scripts on and off. German has the longer texts. */
const SHORT = ['phone-dark-german', 'desktop', 'phone-without-scripts'];

describe.each(selectNamedRows(LOOKS, SHORT))("the hub's page for an installer (%s)", (look, options) => {
  const scripts = options.javaScriptEnabled !== false;
  const german = options.locale === 'de-DE';

  it('an installer who signed in by a one-time address gets the setup code', async () => {
    await using visit = await signedIn(options);
    const { page } = visit;
    await page.locator('#about summary').click();
    await page.locator('#setup-code').click();
    await page.getByText((await testHub.hub.setupCode()).code, { exact: true }).waitFor();
    await expectUsable(visit, `installer-${look}-setup-code`);
  });

  it('an installer sees which browsers are signed in, and signs another one out', async () => {
    await using other = await signedIn({ ...DESKTOP, javaScriptEnabled: false });
    await using visit = await signedIn(options);
    const { page } = visit;
    await page.locator('#browsers').click();
    await page.locator('#sign-out-1').waitFor();
    await expectUsable(visit, `installer-${look}-browsers`);
    const before = await page.locator('.card').count();
    await page.locator('#sign-out-1').click();
    await page
      .locator('.card')
      .nth(before - 1)
      .waitFor({ state: 'detached' });
    await other.page.reload();
    await other.page.locator('#code').waitFor();
  });

  it('an installer adds an appliance, rotates its secret, disconnects it and removes it', async () => {
    await using visit = await signedIn(options);
    const { page } = visit;
    const name = `wallbox-${look}`;
    await expectUsable(visit, `installer-${look}-overview`);
    expect(await page.locator('html').getAttribute('lang')).toBe(german ? 'de' : 'en');

    await page.locator('#add').click();
    await page.locator('#name').fill(SCRIPT);
    await page.locator('#scope').fill('Monitoring "x"');
    await page.locator('#submit').click();
    await page.locator('#scope-problem').waitFor();
    expect(await page.locator('#name').inputValue()).toBe(SCRIPT.slice(0, 64));
    expect(await page.locator('#scope').getAttribute('aria-describedby')).toBe('scope-problem scope-hint');
    await expectUsable(visit, `installer-${look}-add-wrong`);

    const secret = await add(visit, name);
    expect(secret).toMatch(/^[\w-]{43}$/);
    await page.locator('[data-copy="client-secret"]').waitFor({ state: scripts ? 'visible' : 'hidden' });
    await expectUsable(visit, `installer-${look}-secret`);
    await page.reload();
    expect(await page.locator('#client-secret').textContent()).toBe(secret);
    await page.locator('#done').click();
    await page.locator('#remove').waitFor();
    await page.goBack();
    expect(await page.content()).not.toContain(secret);
    await expectUsable(visit, `installer-${look}-secret-gone`);

    await hub.pair(name, emulator);
    await page.goto(`${origin}/`);
    await page.locator(`#pair-${name}`).waitFor({ state: 'detached' });
    await page.locator(`#open-${name}`).click();
    await page.locator('#refresh').click();
    await page.locator('.history li').nth(1).waitFor();
    await expectUsable(visit, `installer-${look}-appliance`);

    await page.locator('#more summary').click();
    await page.locator('#rotate-secret').click();
    await expectUsable(visit, `installer-${look}-rotate`);
    await page.locator('#yes').click();
    const another = (await page.locator('#client-secret').textContent()) ?? '';
    rememberSecrets([another]);
    expect(another).not.toBe(secret);
    await page.locator('#done').click();

    await page.locator('#unpair').click();
    await expectUsable(visit, `installer-${look}-unpair`);
    await page.locator('#yes').click();
    await page.locator(`#pair-${name}`).waitFor();
    expect(await hub.appliance(name)).toMatchObject({ state: 'unpaired' });

    await page.locator('#remove').click();
    await page.locator('#yes').click();
    await page.locator('#health').waitFor();
    expect((await hub.status()).appliances.map((one) => one.name)).not.toContain(name);
    await page.goto(`${origin}/appliances/${name}`);
    await page
      .getByText(german ? 'Gerät nicht gefunden' : 'Appliance not found')
      .first()
      .waitFor();
    await expectUsable(visit, `installer-${look}-gone`);
    expect(await page.title()).not.toContain('taken over');
    expect(visit.browserErrors).toEqual([]);
  });

  it('an installer opens registration, sees an appliance that asks to join, and approves it', async () => {
    await using visit = await signedIn(options);
    const { page } = visit;
    await page.locator('#registration-part summary').click();
    await page.locator('#registration').click();
    await page.getByText(german ? 'Neue Geräte sind zugelassen' : 'New appliances are allowed to join').waitFor();
    const { name, code } = await register(`stove ${look}`);
    const stranger = await register(`stove ${look}`);
    if (!scripts) await page.goto(`${origin}/`);
    await page.locator(`#approve-${name}`).waitFor();
    await page.locator(`#approve-${stranger.name}`).waitFor();
    expect(stranger.name).toBe(`${name}-2`);
    for (const one of [{ name, code }, stranger]) {
      const card = page.locator(`#appliance-${one.name}`);
      expect(await card.locator('.compare').textContent()).toBe(one.code);
      expect(await card.textContent()).toContain('127.0.0.1');
    }
    expect(await page.locator('#several-asked').textContent()).toMatch(german ? /^2 Geräte/ : /^2 appliances/);
    expect(await page.content()).toContain('&lt;script&gt;');
    await expectUsable(visit, `installer-${look}-introduced`);
    await hub.ask((control) => control.request('removeAppliance', { name: stranger.name }));
    await page.locator(`#approve-${name}`).click();
    await page.locator(`#pair-${name}`).waitFor();
    expect(await hub.appliance(name)).not.toHaveProperty('waiting_for_approval');
    await page.goto(`${origin}/appliances/${name}/remove`);
    await page.locator('#yes').click();
    await page.locator('#registration').click();
    await page.locator('#registration-part:not([open])').waitFor();
    expect(visit.browserErrors).toEqual([]);
  });
});

/** An appliance registers (RFC 7591). */
async function register(client_name: string): Promise<{ readonly name: string; readonly code: string }> {
  await using client = await HubClient.of(hub);
  const registration = await client.register({ client_name, software_id: SCRIPT });
  return { name: String(registration['client_name']), code: String(registration['comparison_code']) };
}

describe('an open page of the hub', () => {
  it('an open page shows changes, and keeps the focus and the opened parts', async () => {
    await using visit = await signedIn();
    const { page } = visit;
    const credentials = await hub.addAppliance('first');
    await page.locator('#appliance-first').waitFor();
    // A screen reader announces only changes of the hub's health.
    expect(await page.getByRole('status').locator('h1').count()).toBe(1);
    expect(await page.locator('main [role=status], main [role=alert], main [aria-live]').count()).toBe(1);
    await page.locator('#about summary').click();
    await page.locator('#pair-first').focus();
    await hub.addAppliance('another');
    await page.locator('#appliance-another').waitFor();
    expect(await page.evaluate(() => document.activeElement?.id)).toBe('pair-first');
    expect(await page.locator('#about').getAttribute('open')).not.toBeNull();
    await hub.pair('first', emulator);
    await page.locator('#pair-first').waitFor({ state: 'detached' });
    await hub.requestToken(credentials);
    await page.locator('#appliance-first .state.good').waitFor();
    expect(visit.browserErrors).toEqual([]);
  });

  it('an open page reconnects after the hub has stopped and started again', async () => {
    await using visit = await signedIn();
    const { page } = visit;
    await hub.addAppliance('before-the-end');
    await page.locator('#appliance-before-the-end').waitFor();
    await hub.kill('SIGTERM');
    await page.getByText('The hub does not respond').waitFor();
    await visit.takeScreenshot('installer-offline');
    await hub.launch();
    await page.locator('#offline').waitFor({ state: 'hidden' });
    await hub.addAppliance('after-the-restart');
    await page.locator('#appliance-after-the-restart').waitFor();
  });
});

it('an open page says that the hub does not respond when it falls silent with open connections, until it is back', async () => {
  await using silent = await startBrowserTestHub({}, { here: false });
  await using visit = await openTrustingVisit(browser, PHONE);
  const { page } = visit;
  await page.clock.install();
  await page.goto(`${silent.origin}/`);
  await enterSetupCode(page, silent.hub);
  // What is added after the page has been shown appears only once its script runs.
  await page.locator('main[data-live]').waitFor();
  await silent.hub.addAppliance('before-the-silence');
  await page.locator('#appliance-before-the-silence').waitFor();
  process.kill(silent.hub.pid, 'SIGSTOP');
  await page.clock.fastForward('00:20');
  await page.getByText('The hub does not respond').waitFor();
  process.kill(silent.hub.pid, 'SIGCONT');
  await page.locator('#offline').waitFor({ state: 'hidden' });
  await silent.hub.addAppliance('after-the-silence');
  await page.locator('#appliance-after-the-silence').waitFor();
});

describe('the certificate warning of the full Chromium', () => {
  let whole: Browser;
  setUpOnce(
    async (parts) => {
      whole = parts.use(await startBrowser({ whole: true }));
    },
    { skipReason: () => browserSkipReason(true) },
  );

  it('an installer accepts the certificate warning once, and gets to the sign-in page (docs/installer-page.md)', async () => {
    await using visit = await whole.visit(PHONE);
    const { page } = visit;
    await expect(page.goto(`${origin}/`)).rejects.toThrow('ERR_CERT_AUTHORITY_INVALID');
    await page.getByText('Your connection is not private').waitFor();
    await visit.takeScreenshot('installer-warning');
    await page.getByRole('button', { name: 'Advanced' }).click();
    await page.getByText('Proceed to 127.0.0.1 (unsafe)').click();
    await page.locator('#code').waitFor();
    await page.reload();
    await page.locator('#code').waitFor();
  });
});

it('an installer can add an appliance with the keyboard alone', async () => {
  await using visit = await signedIn(DESKTOP);
  const { page } = visit;
  const to = async (id: string) => {
    for (let tries = 0; tries < 40; tries++) {
      if ((await page.evaluate(() => document.activeElement?.id)) === id) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`the keyboard does not get to ${id}`);
  };
  await to('add');
  await page.keyboard.press('Enter');
  await page.locator('#name').waitFor();
  await to('name');
  await page.keyboard.type('by-keyboard');
  await page.keyboard.press('Enter');
  await page.locator('#client-secret').waitFor();
  rememberSecrets([(await page.locator('#client-secret').textContent()) ?? '']);
  await to('done');
  await page.keyboard.press('Enter');
  await eventually(async () => new URL(page.url()).pathname === '/appliances/by-keyboard');
  expect(visit.browserErrors).toEqual([]);
});

it('text at twice its size keeps words whole and buttons large enough for a finger', async () => {
  await using visit = await signedIn({ ...PHONE, viewport: { width: 195, height: 422 } });
  await add(visit, 'magnified');
  const height = async (selector: string) => {
    const element = visit.page.locator(selector);
    await element.waitFor();
    return (await element.boundingBox())?.height;
  };
  expect(await height('[data-copy="client-secret"]')).toBeLessThan(60);
  expect(await height('header.top span')).toBeLessThan(60);
  await expectUsable(visit, 'installer-magnified');
});

it('a tap copies the new secret of an appliance, and a redirect address in its field', async () => {
  await using visit = await signedIn();
  const { page } = visit;
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const secret = await add(visit, 'copied-from');
  const button = page.locator('[data-copy="client-secret"]');
  await button.tap();
  await eventually(async () => (await button.textContent()) === 'Copied');
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  expect(await copied()).toBe(secret);
  await page.goto(`${origin}/portals/add?cloud=tibber`);
  await page.locator('#redirect_uri').fill('https://you.example/relay.html');
  await page.locator('[data-copy="redirect_uri"]').tap();
  await eventually(async () => (await copied()) === 'https://you.example/relay.html');
  expect(visit.browserErrors).toEqual([]);
});

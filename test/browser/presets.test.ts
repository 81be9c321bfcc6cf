// From nothing to a connected login on a phone, with the configuration that a person of these clouds writes.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import type { EmulatorOptions } from '../../src/emulator/index.ts';
import { textsFor } from '../../src/page/page-context.ts';
import { type Browser, browserSkipReason, PHONE, startBrowser, type Visit } from '../support/browser.ts';
import { eventually, HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { setUpOnce } from '../support/set-up.ts';
import { expectUsable } from '../support/usability.ts';
import { logIn, openTrustingVisit } from './browser-test-hub.ts';

let browser: Browser;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
  },
  { skipReason: browserSkipReason },
);

const texts = textsFor(undefined);
/** The address on which a browser ends that the cloud sends to a machine without a server. */
const DEAD_REDIRECT = 'http://localhost:8765/back';

/** The endpoints of a preset at the emulator. */
const ENDPOINTS = {
  tado: { device_authorization_endpoint: 'device_authorization', token_endpoint: 'token' },
  netatmo: { authorization_endpoint: 'authorize', token_endpoint: 'token' },
} as const;

/** A hub whose portal is the double of a cloud. @param keys of the portal besides its endpoints, as TOML lines */
async function startHub(preset: keyof typeof ENDPOINTS, keys: readonly string[], emulator: EmulatorOptions = {}) {
  await using starting = new AsyncDisposableStack();
  const cloud = starting.use(await startPortal({ profile: preset, ...emulator }));
  const endpoints = Object.entries(ENDPOINTS[preset]).map(
    ([key, path]) => `${key} = "${cloud.frontendUrl}/oauth2/${path}"`,
  );
  const toml = ['[portals.home]', `preset = "${preset}"`, ...endpoints, ...keys].join('\n');
  const hub = starting.use(await HubProcess.prepare({ toml }));
  await writeFile(join(hub.directory, 'cloud.secret'), cloud.clientSecret, { mode: 0o600 });
  await hub.launch();
  const visit = starting.use(await openTrustingVisit(browser, PHONE));
  const parts = starting.move();
  return { cloud, hub, visit, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** Signs in at a hub that knows nothing yet, adds a connection, and begins to connect it. */
async function beginFromNothing(hub: HubProcess, { page }: Visit): Promise<void> {
  await page.goto(`https://127.0.0.1:${hub.httpsPort}/`);
  await page.getByLabel(texts.signIn.label).fill((await hub.setupCode()).code);
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: texts.addConnection.title }).click();
  await page.getByLabel(texts.adding.name, { exact: true }).fill('heating');
  await page.getByRole('button', { name: texts.adding.add, exact: true }).click();
  await page.getByRole('button', { name: texts.overview.connect, exact: true }).click();
  await page.getByText(texts.pairing.waiting).first().waitFor();
}

async function expectConnected(hub: HubProcess, scope: string): Promise<void> {
  await eventually(async () => (await hub.connection('heating')).state === 'active');
  expect(await hub.connection('heating')).toMatchObject({ scope, problem: null });
}

/** Follows the link of the hub in a tab of its own. */
async function openLogin(page: Page): Promise<Page> {
  const portal = await page.context().newPage();
  await portal.goto((await page.locator('#login').getAttribute('href')) ?? '');
  return portal;
}

const APP = { id: 'my-app', secret: 'the-secret-of-my-app', name: 'Latchkey' };
rememberSecrets([APP.secret]);
const NETATMO = ['client_id = "my-app"', 'client_secret_file = "cloud.secret"'];
const NETATMO_SCOPE = 'read_station read_thermostat write_thermostat';

describe('on a phone, from nothing to a connected login', () => {
  it('at tado, by the code that the phone shows, with nothing but the name of the preset', async () => {
    await using house = await startHub('tado', []);
    const { hub, visit } = house;
    const { page } = visit;
    await beginFromNothing(hub, visit);
    await page.getByText(texts.pairing.compareCode).waitFor();
    const code = (await page.locator('#user-code').textContent()) ?? '';
    await expectUsable(visit, 'tado-code');
    const address = page.url();
    await page.getByRole('link', { name: texts.pairing.logIn }).click();
    await page.getByText(code).waitFor();
    await logIn(page);
    await page.getByText('now gets access').waitFor();
    await page.goto(address);
    await page.getByText(texts.pairing.connectedText).waitFor();
    await expectUsable(visit, 'tado-connected');
    await expectConnected(hub, 'offline_access');
    expect(visit.browserErrors).toEqual([]);
  });

  it('at Netatmo, by the redirect to the hub', async () => {
    await using house = await startHub('netatmo', NETATMO, { clients: [APP] });
    const { hub, visit } = house;
    const { page } = visit;
    await beginFromNothing(hub, visit);
    await expectUsable(visit, 'netatmo-link');
    await page.getByRole('link', { name: texts.pairing.logIn }).click();
    await logIn(page);
    await page.getByText(texts.result.connectedText).waitFor();
    expect(new URL(page.url()).pathname).toBe('/callback');
    await expectUsable(visit, 'netatmo-redirected');
    await expectConnected(hub, NETATMO_SCOPE);
    expect(visit.browserErrors).toEqual([]);
  });

  it('at Netatmo, by pasting the address on which the browser ended', async () => {
    const keys = [...NETATMO, `redirect_uri = "${DEAD_REDIRECT}"`, 'login = "paste"'];
    await using house = await startHub('netatmo', keys, { clients: [{ ...APP, redirectUris: [DEAD_REDIRECT] }] });
    const { hub, visit } = house;
    const { page } = visit;
    await beginFromNothing(hub, visit);
    await expectUsable(visit, 'netatmo-paste-link');
    const portal = await openLogin(page);
    const failed = portal.waitForEvent('requestfailed');
    await logIn(portal);
    const address = (await failed).url();
    // The browser could not open that address, and says so.
    visit.clearBrowserErrors();
    const { paste } = texts.pairing;
    await page.getByText(paste.expected).waitFor();
    await page.getByRole('link', { name: paste.open }).click();
    await page.getByLabel(paste.address).fill(address);
    await expectUsable(visit, 'netatmo-paste');
    await page.getByRole('button', { name: paste.connect }).click();
    await page.getByText(texts.pairing.connectedText).waitFor();
    await expectUsable(visit, 'netatmo-pasted');
    await expectConnected(hub, NETATMO_SCOPE);
    expect(visit.browserErrors).toEqual([]);
  });
});

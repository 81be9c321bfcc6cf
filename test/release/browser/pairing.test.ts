import { describe, expect, it } from 'vitest';
import {
  expectPage,
  logIn,
  openTrustingVisit,
  savePicture,
  setUpBrowserTests,
} from '../../browser/browser-test-hub.ts';
import { type DeviceFlow, HubClient } from '../../lan/hub-client.ts';
import { DESKTOP, PHONE, SMALL_PHONE } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { selectNamedRows } from '../../support/long.ts';
import { expectUsable } from '../../support/usability.ts';

const testHub = setUpBrowserTests();

describe('the browser of a person with a pairing link', () => {
  it("a person opens the printed link, logs in, and sees on the hub's page that the appliance is connected", async () => {
    const { hub, emulator } = testHub;
    await using visit = await testHub.browser.visit(PHONE);
    const { page } = visit;
    await page.goto(await linkOf('wallbox'));
    await expectPage(visit, 'login', 'Latchkey asks for access to your account');
    await savePicture(visit, 'login');

    await logIn(visit.page, 'not it');
    await expectPage(visit, 'wrong-password', 'User name or password is wrong. Please try again.');
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'pairing' });

    await logIn(visit.page);
    await expectPage(visit, 'connected', 'wallbox is connected');
    await savePicture(visit, 'connected');
    expect(new URL(page.url()).origin).toBe(callbackOrigin());
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });

    await page.reload();
    await expectPage(visit, 'connected-reloaded', 'wallbox is connected');
    expect(emulator.observations).toMatchObject({ codesRepeated: 0 });

    expect(visit.origins).toEqual([emulator.frontendUrl, emulator.baseUrl, callbackOrigin()]);
    expect(visit.browserErrors).toEqual([]);
  });
});

describe('the browser of a person with a user code', () => {
  it('a person can type the user code without scripts, also after a mistake', async () => {
    await using visit = await openTrustingVisit(testHub.browser, { ...PHONE, javaScriptEnabled: false });
    const { page } = visit;
    const { userCode } = await begin('wallbox');
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

  it('a person keeps all attempts whatever another website makes the browser request', async () => {
    await using visit = await openTrustingVisit(testHub.browser, DESKTOP);
    const { page } = visit;
    const { link } = await begin('wallbox');
    const shortLink = await shortLinkOf('heater');
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
      await page.getByText('Continue only if your appliance has opened this page').waitFor();
    }
    // Links in a mail or on the appliance's own page still work.
    await page.goto(`${site.url}links`);
    await page.locator('#to1').click();
    await page.getByText('asks for access to your account').waitFor();
    await page.goto(`${site.url}links`);
    await page.locator('#to0').click();
    await expectPage(visit, 'device-led-here', 'Continue only if your appliance has opened this page');
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

// Every width and both colour schemes; the tests above cover the phone in the light scheme.
const SHORT = ['on a desktop', 'on a phone in the dark', 'on a small phone'];

it.each(selectNamedRows(WINDOWS, SHORT))('the pages of a pairing are legible %s', async (title, options) => {
  const name = 'a-heat-pump-with-a-name-that-goes-on-and-on-to-the-end-of-it';
  await using visit = await openTrustingVisit(testHub.browser, options);
  const { page } = visit;
  const { link: codeLink } = await begin(name);
  await page.goto(`${testHub.origin}/pair`);
  await expectPage(visit, `${title}-type`, 'Type the code that the appliance shows');
  await page.goto(`${testHub.origin}/pair?user_code=BBBB-BBBB`);
  await expectPage(visit, `${title}-wrong`, 'No waiting appliance has this code');
  await page.goto(codeLink);
  await expectPage(visit, `${title}-confirm`, `Connect ${name}?`);
  const fault = testHub.emulator.addFault({ kind: 'status', status: 503, endpoint: 'config', times: null });
  await page.getByRole('button', { name: 'Continue' }).click();
  await expectPage(visit, `${title}-unreachable`, 'The portal cannot be reached');
  testHub.emulator.removeFault(fault.id);

  const link = await linkOf(`${name.slice(0, -1)}2`);
  await page.goto(link);
  await expectPage(visit, `${title}-login`, 'asks for access');
  await logIn(page, 'not it');
  await expectPage(visit, `${title}-wrong-password`, 'is wrong');
  await logIn(page);
  await expectPage(visit, `${title}-connected`, `${name.slice(0, -1)}2 is connected`);
  await page.goto(link);
  await expectPage(visit, `${title}-used`, 'This link was used before');
  await page.goto(await linkOf(`${name.slice(0, -1)}3`));
  await page.getByRole('button', { name: 'Refuse' }).click();
  await expectPage(visit, `${title}-refused`, 'is not connected');
  await page.goto(callbackOrigin());
  await expectPage(visit, `${title}-start`, 'Open the secure page');
  expect(visit.browserErrors).toEqual([]);
});

/** Adds an appliance and starts its pairing. @returns the pairing link */
async function linkOf(name: string): Promise<string> {
  await testHub.hub.addAppliance(name, 'Monitoring RemoteControl');
  return (await testHub.hub.beginPairing(name)).href;
}

const callbackOrigin = () => `http://127.0.0.1:${testHub.hub.httpPort}`;

/** Adds an appliance and begins its pairing at the hub. @returns its short link */
async function shortLinkOf(name: string): Promise<string> {
  await testHub.hub.addAppliance(name, 'Monitoring RemoteControl');
  return (await testHub.hub.shortLink(name)).href;
}

/** Adds an appliance, which starts a device flow. */
async function begin(name: string): Promise<DeviceFlow> {
  await using client = await HubClient.of(testHub.hub);
  return await client.beginDeviceFlow(await testHub.hub.addAppliance(name, 'Monitoring RemoteControl'));
}

import { beforeEach, describe, expect, it } from 'vitest';
import type { CredentialsResponse } from '../../../src/control/messages.ts';
import {
  logIn,
  openSignedIn,
  openTrustingVisit,
  savePicture,
  setUpBrowserTests,
} from '../../browser/browser-test-hub.ts';
import { PHONE } from '../../support/browser.ts';
import { qrScannerSkipReason, scanQrCode } from '../../support/qr-scanner.ts';
import { expectUsable } from '../../support/usability.ts';

const APPLIANCES = ['battery', 'heat-pump', 'wallbox'] as const;

const testHub = setUpBrowserTests();
let credentials: CredentialsResponse[];
beforeEach(async () => {
  credentials = [];
  for (const name of APPLIANCES) credentials.push(await testHub.hub.addAppliance(name, 'Monitoring RemoteControl'));
});

describe('an installer with a phone on the home network', () => {
  it('an installer connects three appliances with one password, with one tap for each further appliance', async () => {
    await using visit = await openSignedIn(testHub.browser, testHub, PHONE);
    const { page } = visit;
    await page.getByRole('button', { name: 'Connect all' }).click();
    await page.getByRole('heading', { name: 'Connect all appliances' }).waitFor();
    await page.getByText('0 of 3 logins done').waitFor();
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
      await page.getByText(index === 0 ? 'heat-pump is connected' : 'All 3 logins are done').waitFor();
    }
    await expectUsable(visit, 'batch-done');
    await page.getByRole('link', { name: 'To the hub’s page' }).click();
    await page.getByRole('status').getByText('All 3 logins are done').waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await page.getByText('3 appliances are logged in, but have not fetched their access yet.').waitFor();
    for (const one of credentials) await testHub.hub.requestToken(one);
    await page.getByText('All 3 appliances are connected.').waitFor();
    await savePicture(visit, 'overview');
    expect(new URL(page.url()).protocol).toBe('https:');
    for (const name of APPLIANCES) expect((await testHub.hub.appliance(name)).state).toBe('active');
    expect(visit.browserErrors).toEqual([]);
  });
});

it('the link of a printed label asks for the setup code first, and then starts a pairing of its appliance', async () => {
  await using visit = await openTrustingVisit(testHub.browser, PHONE);
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
  await using visit = await openSignedIn(testHub.browser, testHub, PHONE);
  const { page } = visit;
  await page.goto(`${testHub.origin}/appliances/wallbox`);
  await page.getByText('More', { exact: true }).click();
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

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import {
  type BrowserTestHub,
  logIn,
  resetBrowserTestHub,
  expectPage as seenUsable,
  startBrowserTestHub,
} from '../../browser/browser-test-hub.ts';
import {
  type Browser,
  browserSkipReason,
  DESKTOP,
  PHONE,
  SMALL_PHONE,
  startBrowser,
  type Visit,
} from '../../support/browser.ts';
import { scaleDeadline } from '../../support/deadlines.ts';
import { setUpOnce } from '../../support/set-up.ts';

/** If this variable is set, the test writes the screenshots of the documentation. */
const IMAGES =
  process.env['LATCHKEY_DOCS_IMAGES'] === undefined ? null : join(import.meta.dirname, '../../../docs/images');

let browser: Browser;
let testHub: BrowserTestHub;
setUpOnce(
  async (parts) => {
    browser = parts.use(await startBrowser());
    testHub = parts.use(await startBrowserTestHub());
  },
  { skipReason: browserSkipReason },
);
afterEach(() => resetBrowserTestHub(testHub));

describe('the browser of a person with a pairing link', () => {
  it("a person opens the printed link, logs in, and sees on the hub's page that the appliance is connected", async () => {
    const { hub, emulator } = testHub;
    await using visit = await browser.visit(PHONE);
    const { page } = visit;
    await page.goto(await linkOf('wallbox'));
    await expectPicturedPage(visit, 'login', 'Latchkey asks for access to your account');

    await logIn(visit.page, 'not it');
    await expectPicturedPage(visit, 'wrong-password', 'User name or password is wrong. Please try again.');
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'pairing' });

    await logIn(visit.page);
    await expectPicturedPage(visit, 'connected', 'wallbox is connected');
    expect(new URL(page.url()).origin).toBe(callbackOrigin());
    expect(await hub.appliance('wallbox')).toMatchObject({ state: 'active', problem: null });

    await page.reload();
    await expectPicturedPage(visit, 'connected-reloaded', 'wallbox is connected');
    expect(emulator.observations).toMatchObject({ codesRepeated: 0 });

    expect(visit.origins).toEqual([emulator.frontendUrl, emulator.baseUrl, callbackOrigin()]);
    expect(visit.browserErrors).toEqual([]);
  });

  it('a person who comes back while the portal is slow sees a page that reloads automatically', async () => {
    const late = Promise.withResolvers<void>();
    const answering = ({ endpoint }: { endpoint: string }) => (endpoint === 'token' ? late.promise : undefined);
    await using slow = await startBrowserTestHub({ intercept: { answering } });
    await using visit = await browser.visit(PHONE);
    await visit.page.goto(await linkOf('wallbox', slow));
    visit.page.setDefaultTimeout(scaleDeadline(20_000));
    await logIn(visit.page);
    // Without scripts only a reload updates the page, so it reloads automatically during the exchange.
    await expectPicturedPage(visit, 'being-connected', 'wallbox is being connected', ['meta-refresh']);
    late.resolve();
    await expectPicturedPage(visit, 'connected-late', 'wallbox is connected');
    expect(slow.emulator.observations).toMatchObject({ codesRepeated: 0 });
    expect(visit.browserErrors).toEqual([]);
  });
});

describe('the legibility of the pages of a pairing', () => {
  it.each([
    ['on a desktop', DESKTOP],
    ['on a phone in the dark', { ...PHONE, colorScheme: 'dark' as const }],
    ['on a small phone', SMALL_PHONE],
  ])('the pages of a pairing are legible %s', async (title, options) => {
    const name = 'a-heat-pump-with-a-name-that-goes-on-and-on-to-the-end-of-it';
    await using visit = await browser.visit(options);
    const { page } = visit;
    const link = await linkOf(name);
    await page.goto(link);
    await expectPicturedPage(visit, `${title}-login`, 'asks for access');
    await logIn(visit.page, 'not it');
    await expectPicturedPage(visit, `${title}-wrong-password`, 'is wrong');
    await logIn(visit.page);
    await expectPicturedPage(visit, `${title}-connected`, `${name} is connected`);
    await page.goto(link);
    await expectPicturedPage(visit, `${title}-used`, 'This link was used before');
    await page.goto(await linkOf(`${name.slice(0, -1)}2`));
    await page.getByRole('button', { name: 'Refuse' }).click();
    await expectPicturedPage(visit, `${title}-refused`, 'is not connected');
    await page.goto(callbackOrigin());
    await expectPicturedPage(visit, `${title}-start`, 'Open the secure page');
    expect(visit.browserErrors).toEqual([]);
  });
});

/** Adds an appliance and starts its pairing. @returns the pairing link */
async function linkOf(name: string, { hub } = testHub): Promise<string> {
  await hub.addAppliance(name, 'Monitoring RemoteControl');
  return (await hub.beginPairing(name)).href;
}

const callbackOrigin = () => `http://127.0.0.1:${testHub.hub.httpPort}`;

/** Like `expectPage` of the other browser tests, and writes the two screenshots of the documentation. */
async function expectPicturedPage(
  visit: Visit,
  name: string,
  text: string,
  allowed?: readonly string[],
): Promise<void> {
  await seenUsable(visit, name, text, allowed);
  if (IMAGES === null || !['login', 'connected'].includes(name)) return;
  await mkdir(IMAGES, { recursive: true });
  await writeFile(join(IMAGES, `${name}.png`), await visit.page.screenshot({ scale: 'css' }));
}

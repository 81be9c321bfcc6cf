import { describe, expect, it } from 'vitest';
import { openTrustingVisit, setUpBrowserTests } from '../../browser/browser-test-hub.ts';
import { DESKTOP, PHONE, SMALL_PHONE, type Visit } from '../../support/browser.ts';
import { startForeignSite } from '../../support/foreign-site.ts';
import { rememberSecrets } from '../../support/logs.ts';
import { expectUsable } from '../../support/usability.ts';

const testHub = setUpBrowserTests();

const cookiesOf = async ({ page }: Visit) =>
  (await page.context().cookies(testHub.origin)).filter(({ name }) => name === '__Host-latchkey');

async function expectSignedIn(visit: Visit): Promise<void> {
  await visit.page.getByRole('button', { name: /Sign out|Abmelden/ }).waitFor();
  const [cookie] = await cookiesOf(visit);
  expect(cookie).toMatchObject({ httpOnly: true, secure: true, sameSite: 'Strict', path: '/', domain: '127.0.0.1' });
  rememberSecrets([cookie?.value ?? '']);
}

describe.each([
  [
    'a small phone in German, without scripts',
    { ...SMALL_PHONE, ignoreHTTPSErrors: true, locale: 'de-DE', javaScriptEnabled: false },
  ],
  ['a desktop', { ...DESKTOP, ignoreHTTPSErrors: true, colorScheme: 'dark' as const }],
])('an installer with %s', (device, options) => {
  it('an installer types the setup code, sees a mistake beside the field, and gets to the page', async () => {
    const german = options.locale === 'de-DE';
    const { code } = await testHub.hub.setupCode();
    await using visit = await testHub.browser.visit(options);
    const { page } = visit;
    await page.goto(`${testHub.origin}/`);
    await page.getByRole('heading', { name: german ? 'Auf der Seite des Hubs anmelden' : 'Sign in' }).waitFor();
    await expectUsable(visit, `sign-in-${device}`);
    expect(await page.textContent('body')).not.toContain('wallbox');
    // The field has the focus, so the keyboard is enough.
    await page.keyboard.type(`${code.slice(0, -1).toLowerCase()}B`.replace(/b$/i, code.endsWith('B') ? 'C' : 'B'));
    await page.keyboard.press('Enter');
    const field = page.getByLabel(german ? 'Einrichtungscode' : 'Setup code');
    await page.getByRole('alert').waitFor();
    await expectUsable(visit, `sign-in-wrong-${device}`);
    expect(await field.getAttribute('aria-invalid')).toBe('true');
    await field.fill(code.toLowerCase().replaceAll('-', ' '));
    await field.press('Enter');
    await expectSignedIn(visit);
    // Playwright can evaluate scripts even if the page's scripts are off.
    expect(await page.evaluate(() => document.cookie)).toBe('');
    expect(page.url()).toBe(`${testHub.origin}/`);
    await visit.takeScreenshot(`signed-in-${device}`);
    await page.getByRole('button', { name: german ? 'Abmelden' : 'Sign out' }).click();
    await page.getByText(german ? 'Sie sind abgemeldet.' : 'You are signed out.').waitFor();
    expect(await cookiesOf(visit)).toEqual([]);
    await page.goBack();
    await page.getByLabel(german ? 'Einrichtungscode' : 'Setup code').waitFor();
    // A page that the browser leaves stops following the hub.
    expect(visit.browserErrors.filter((complaint) => !complaint.endsWith('/live: net::ERR_ABORTED'))).toEqual([]);
  });
});

describe('a one-time address', () => {
  it.each([true, false])(
    'a one-time address in a mail or chat signs in too (scripts: %s)',
    async (javaScriptEnabled) => {
      const { sign_in } = await testHub.hub.setupCode();
      await using site = await startForeignSite(() => `<a href="${sign_in}">The hub</a>`);
      await using visit = await openTrustingVisit(testHub.browser, { ...PHONE, javaScriptEnabled });
      await visit.page.goto(site.url);
      await visit.page.getByRole('link').click();
      await expectSignedIn(visit);
    },
  );
});

it('another site can not send a valid form, even if it knows the CSRF token', async () => {
  await using visit = await openTrustingVisit(testHub.browser, DESKTOP);
  await visit.page.goto((await testHub.hub.setupCode()).sign_in);
  await expectSignedIn(visit);
  const csrf = (await visit.page.locator('input[name="csrf"]').first().getAttribute('value')) ?? '';
  rememberSecrets([csrf]);
  await using site = await startForeignSite(
    () =>
      `<form method="post" action="${testHub.origin}/sign-out"><input name="csrf" value="${csrf}"><button>Win</button></form>`,
  );
  await visit.page.goto(site.url);
  await visit.page.getByRole('button').click();
  await visit.page.getByText('Nothing was changed').waitFor();
  await visit.page.goto(`${testHub.origin}/`);
  await expectSignedIn(visit);
});

it('a page with a secret that the browser restores from memory asks the hub whether to show it', async () => {
  await using visit = await openTrustingVisit(testHub.browser, PHONE);
  const { page } = visit;
  await page.goto((await testHub.hub.setupCode()).sign_in);
  await expectSignedIn(visit);
  await page.goto(`${testHub.origin}/appliances/add`);
  await page.locator('#name').fill('from-memory');
  await page.locator('#submit').click();
  const secret = (await page.locator('#client-secret').textContent()) ?? '';
  rememberSecrets([secret]);
  await testHub.hub.setupCode({ rotate: true });
  expect(await page.textContent('body')).toContain(secret);
  // After the load, the page's script listens.
  await page.waitForLoadState();
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
  await page.getByLabel('Setup code').waitFor();
  expect(await page.textContent('body')).not.toContain(secret);
});

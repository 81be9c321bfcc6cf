import { Agent, request } from 'undici';
import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';
import { PHONE, startBrowser } from '../../support/browser.ts';

/** What a person is shown of a device flow (RFC 8628, 3.3). */
export interface Shown {
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
}

/** Takes the user code to the hub and logs in at the portal, without a browser. */
export async function logIn({ verification_uri, user_code }: Shown, emulator: Emulator, ca: string): Promise<void> {
  const agent = new Agent({ connect: { ca } });
  const answer = await request(verification_uri, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ user_code }).toString(),
  });
  expect(answer.statusCode, await answer.body.text()).toBe(303);
  const state = new URL(String(answer.headers['location'])).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo' });
  expect(await (await request(location)).body.text()).toContain('is connected');
  await agent.destroy();
}

/** Opens the link with a real browser, goes on to the portal and logs in there. */
export async function logInByBrowser({ verification_uri_complete, user_code }: Shown): Promise<void> {
  await using browser = await startBrowser();
  await using visit = await browser.visit({ ...PHONE, ignoreHTTPSErrors: true });
  const { page } = visit;
  await page.goto(verification_uri_complete);
  await page.getByText(user_code).first().waitFor();
  await page.getByRole('button').click();
  await page.getByLabel('User name').fill('demo');
  await page.getByLabel('Password').fill('demo');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('is connected').waitFor();
}
